/** Keeps an agent's session, its evidence and its reports up to date, turn after turn. */
import { Buffer } from "node:buffer";
import type { Clock } from "../../base/clock.ts";
import { errorText, TamqError } from "../../base/errors.ts";
import { newId } from "../../base/ids.ts";
import type { Log } from "../../base/log.ts";
import type { DispatcherService } from "../gen/dispatcher_pb.ts";
import type { Client } from "../rpc.ts";
import { bindingOf, FLEET_PROTOCOL } from "../session.ts";
import { Turns } from "../turns.ts";
import { type AgentCore, keepSession, selfOf } from "./core.ts";
import { settle, taskKey } from "./runs.ts";

export interface KeeperOptions {
  readonly core: AgentCore;
  readonly dispatcher: Client<typeof DispatcherService>;
  readonly clock: Clock;
  readonly log: Log;
  /** Between two looks at the dispatcher when nothing happens, milliseconds. */
  readonly everyMs: number;
  /** Called once when another process has become this agent: this one must end (G-17). */
  readonly onFenced: () => void;
}

/** Reports of one turn at most. */
const REPORTS = 100;

export class Keeper {
  readonly #o: KeeperOptions;
  readonly #turns: Turns;
  /** Kept until the dispatcher has answered, so that a lost answer costs no generation (G-04). */
  #activation: string | undefined;
  #reachable: boolean | undefined;

  constructor(options: KeeperOptions) {
    this.#o = options;
    const { clock, everyMs } = options;
    this.#turns = new Turns({ clock, everyMs, turn: () => this.#safeTurn() });
  }

  start(): void {
    this.#turns.start();
  }

  nudge(): void {
    this.#turns.nudge();
  }

  async stop(): Promise<void> {
    await this.#turns.stop();
  }

  async #safeTurn(): Promise<void> {
    const { log } = this.#o;
    try {
      await this.turn();
      if (this.#reachable !== true) log.info("fleet.joined", {});
      this.#reachable = true;
    } catch (error) {
      if (this.#reachable !== false) log.warn("fleet.apart", { reason: errorText(error) });
      this.#reachable = false;
    }
  }

  /** One turn: session, evidence, reports. Throws what keeps the dispatcher away. */
  async turn(): Promise<void> {
    await this.#settleRuns();
    await this.#session();
    await this.#report();
  }

  async #session(): Promise<void> {
    const { core, dispatcher, onFenced } = this.#o;
    const bootstrap = await dispatcher.getBootstrap({ meta: this.#meta("bootstrap") });
    const self = (await core.store.commit(selfOf))?.value;
    const { session, dispatcherEpoch } = bootstrap;
    const holds = self !== undefined && self.epoch === dispatcherEpoch &&
      self.bootId === core.bootId && session?.bootId === core.bootId &&
      session.sessionGeneration === BigInt(self.generation);
    if (holds) return;
    this.#activation ??= newId(core.clock, core.random);
    try {
      const answer = await dispatcher.activateAgent({
        meta: this.#meta(this.#activation),
        activationOperationId: this.#activation,
        cellId: core.cellId,
        bootId: core.bootId,
      });
      this.#activation = undefined;
      const opened = answer.session!;
      await core.store.commit((tx) =>
        keepSession(tx, {
          epoch: opened.dispatcherEpoch,
          cellId: opened.cellId,
          bootId: opened.bootId,
          generation: Number(opened.sessionGeneration),
        })
      );
    } catch (error) {
      if (error instanceof TamqError && error.reason === "boot_fenced") onFenced();
      throw error;
    }
  }

  /** Evidence that came since: of deliveries, and of what was under way when a process died. */
  async #settleRuns(): Promise<void> {
    const { core } = this.#o;
    for (
      const { key, value } of await core.store.commit((tx) => tx.list("run", { group: "open" }))
    ) {
      const running = core.calls.of(taskKey(value.tenantId, value.taskId));
      if (running.some((call) => call.executionId === key)) continue;
      let evidence;
      try {
        evidence = await core.adapter.find(key);
      } catch {
        return; // nobody to ask; later
      }
      if (evidence !== undefined) await core.store.commit((tx) => settle(tx, core, key, evidence));
    }
  }

  async #report(): Promise<void> {
    const { core, dispatcher, log } = this.#o;
    const options = { group: "waiting", limit: REPORTS };
    const self = (await core.store.commit(selfOf))!.value;
    for (const { key, value } of await core.store.commit((tx) => tx.list("note", options))) {
      const { executionId, kind, contentSha256, content } = value;
      let to = "sent";
      try {
        await dispatcher.reportExecutionEvent({
          meta: { ...this.#meta(key), session: bindingOf(self) },
          factId: key,
          contentSha256,
          executionId,
          kind,
          content: Buffer.from(content, "base64"),
        });
      } catch (error) {
        // What the dispatcher will never take must not hold up what comes after it.
        const never = error instanceof TamqError &&
          ["NOT_FOUND", "PERMISSION_DENIED", "INVALID_ARGUMENT"].includes(error.code);
        if (!never) throw error;
        log.warn("fleet.report_refused", { fact: key, reason: error.reason });
        to = "refused";
      }
      await core.store.commit(async (tx) => {
        const known = (await tx.get("note", key))!;
        await tx.update("note", key, known.revision, known.value, to);
      });
    }
  }

  #meta(operationId: string) {
    const { agentId } = this.#o.core;
    return { protocolVersion: FLEET_PROTOCOL, agentId, operationId, idempotencyKey: operationId };
  }
}
