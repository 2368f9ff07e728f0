/**
 * Decides for each trigger and tends each held lease (K-03 to K-07). One turn at a time; what it
 * knows is in the database, so that a turn cut off anywhere is taken up again by the next.
 */
import type { Clock } from "../base/clock.ts";
import { errorText, TamqError } from "../base/errors.ts";
import type { Log } from "../base/log.ts";
import { probe } from "../base/probe.ts";
import type { ProcessIdentity } from "../base/proc.ts";
import type { Steady } from "../base/steady.ts";
import type { CoordinationSettings } from "../model/coordination.ts";
import type { Registry } from "../model/ports.ts";
import { backoffMs } from "../model/retry_schedule.ts";
import type { WireEndpoint } from "../protocol/schema.ts";
import type { CoordinationEngineAdapter } from "./adapter.ts";
import { targetOf, windowsOf } from "./facts.ts";
import {
  type Decision,
  evaluate,
  type Facts,
  mayLookAgain,
  NEVER_APPROVABLE,
  type NotYet,
  type Subject,
} from "./gates.ts";
import { IDENTITY_REASONS, IdentityWatch } from "./identity_watch.ts";
import type { Leases } from "./leases.ts";
import type { Receipts, Rules } from "./receipts.ts";
import type { LeaseRow, TriggerRow } from "./records.ts";
import type { CoordStore } from "./store/store.ts";
import { NEVER } from "./store/triggers.ts";
import { Tender } from "./tender.ts";
import { triggerOf, type Wakes } from "./wakes.ts";

export interface WakerOptions {
  readonly store: CoordStore;
  readonly leases: Leases;
  readonly adapter: CoordinationEngineAdapter;
  readonly wakes: Wakes;
  readonly registry: Registry;
  readonly identify: (pid: number) => ProcessIdentity | undefined;
  readonly receipts: Receipts;
  readonly rules: Rules;
  readonly settings: CoordinationSettings;
  readonly steady: Steady;
  readonly clock: Clock;
  readonly log: Log;
  /** The hub knows nothing of a record that its feed told of. */
  readonly onSourceGone: () => void;
  /** An endpoint seen for the first time gets its identity (K-09). */
  readonly onEndpoints: (endpoints: readonly WireEndpoint[]) => Promise<void>;
}

/** Decided in one transaction; the next turn goes on with the rest. */
const BATCH = 200;
/** What has ended for good, with the state of the trigger. */
const ENDS: Partial<Record<NotYet, TriggerRow["state"]>> = {
  source_gone: "done",
  superseded: "done",
  finished: "done",
  lease_completed: "done",
  attempts_exhausted: "stopped",
  retry_not_allowed: "stopped",
};
/** What time alone changes; everything else waits for a change that is told. */
const TIMED: readonly NotYet[] = ["backing_off"];
/** How soon a wake that failed on the way is tried again. */
const AGAIN_MS = 2000;

export class Waker {
  readonly #o: WakerOptions;
  readonly #tender: Tender;
  readonly #identities: IdentityWatch;
  /** Undefined: the message service did not answer. */
  #endpoints: readonly WireEndpoint[] | undefined;
  /** Live windows as they were last seen, to notice when one comes or goes. */
  #seen = "";

  constructor(options: WakerOptions) {
    this.#o = options;
    this.#identities = new IdentityWatch(options);
    this.#tender = new Tender({
      ...options,
      judge: (lease, trigger) => this.#judge(lease, trigger),
    });
  }

  /** Live endpoints as of the last turn; undefined while the message service does not answer. */
  get endpoints(): readonly WireEndpoint[] | undefined {
    return this.#endpoints;
  }

  /** Everything that is due now. True when more is due at once. */
  async turn(): Promise<boolean> {
    await this.#look();
    await this.#tender.tend(this.#endpoints);
    return await this.#decideAll();
  }

  /** When the next turn is due, steady milliseconds; undefined: when something happens. */
  nextDue(): number | undefined {
    const times = [this.#o.store.triggers.nextDue(), this.#tender.nextDue()]
      .filter((time) => time !== undefined);
    return times.length === 0 ? undefined : Math.min(...times);
  }

  async #look(): Promise<void> {
    const { adapter, log, store, onEndpoints } = this.#o;
    try {
      this.#endpoints = await adapter.endpoints();
    } catch (error) {
      if (this.#endpoints !== undefined) {
        log.warn("service.unreachable", { reason: errorText(error) });
      }
      this.#endpoints = undefined;
      return;
    }
    await onEndpoints(this.#endpoints);
    await this.#identities.look(this.#endpoints).catch((error) => {
      log.warn("identities.unchecked", { reason: errorText(error) });
    });
    const seen = JSON.stringify(
      this.#endpoints.map((one) => [
        one.endpoint_id,
        one.attachments.map(({ repo, broker_pid, path }) => [repo, broker_pid, path]),
      ]),
    );
    if (seen === this.#seen) return;
    this.#seen = seen;
    await store.commit(() => store.triggers.lookAgain(["session_absent", "endpoint_ambiguous"]));
  }

  async #decideAll(): Promise<boolean> {
    const { store } = this.#o;
    if (this.#endpoints === undefined) return false;
    // Decided inside the transaction: what another job of it has changed is seen.
    const { count, actionable } = await store.commit(() => this.#decideDue());
    for (const trigger of actionable) await this.#wake(trigger);
    return count === BATCH;
  }

  #decideDue(): { count: number; actionable: TriggerRow[] } {
    const { store, steady, log } = this.#o;
    const due = store.triggers.due(steady.now(), BATCH);
    // One piece of work a repository at a time: the next wake would only pile up in its window.
    const busy = new Set(store.leases.held().map((lease) => lease.targetRepo));
    const actionable: TriggerRow[] = [];
    for (const trigger of due) {
      try {
        const subject = store.triggers.source(trigger.source, trigger.sourceId)?.subject;
        // First by what was observed: only who may be woken costs a question to the hub.
        const decision = this.#evaluate(trigger, subject, undefined);
        if (decision.kind !== "not_yet" || decision.reason !== "prompt_unchecked") {
          this.#settle(trigger, decision);
        } else if (busy.has(trigger.targetRepo)) {
          store.triggers.update({ ...trigger, decision: "repository_busy", dueAt: 0 });
        } else {
          busy.add(trigger.targetRepo);
          actionable.push(trigger);
        }
      } catch (error) {
        log.warn("trigger.undecided", { trigger: trigger.triggerId, reason: errorText(error) });
        this.#postpone(trigger, "registry_unavailable");
      }
    }
    return { count: due.length, actionable };
  }

  /** Asks the hub once more, makes the prompt, decides, claims, sends. */
  async #wake(trigger: TriggerRow): Promise<void> {
    const { store, wakes, leases, receipts, log } = this.#o;
    let draft;
    try {
      draft = await wakes.prepare(trigger);
    } catch (error) {
      const reason = error instanceof TamqError ? error.reason : "failed";
      if (!(error instanceof TamqError)) {
        log.error("wake.unprepared", { trigger: trigger.triggerId, reason: errorText(error) });
      }
      await store.commit(() => this.#postpone(trigger, reason));
      return;
    }
    if (draft.subject === undefined) this.#o.onSourceGone();
    const lease = await store.commit(() => {
      // As it is now: what happened while the hub was asked is not overlooked.
      const now = store.triggers.get(trigger.triggerId);
      if (now?.state !== "waiting") return undefined;
      const decision = this.#evaluate(now, draft.subject, draft.secret);
      if (decision.kind !== "actionable") {
        this.#settle(now, decision);
        return undefined;
      }
      if ((IDENTITY_REASONS as readonly string[]).includes(now.decision)) {
        receipts.write("trigger", "waiting", { trigger: now }, { reason: "identity_changed" });
      }
      return leases.claim(trigger.triggerId, draft.checkpoint !== undefined, draft.prompt);
    });
    if (lease === undefined) return;
    probe("coord.claimed", lease);
    await this.#tender.send(lease, this.#endpoints ?? []);
  }

  #evaluate(
    trigger: TriggerRow,
    subject: Subject | undefined,
    promptSecret: boolean | undefined,
  ): Decision {
    const facts = this.#facts(trigger, subject, promptSecret);
    return evaluate(triggerOf(trigger), facts, this.#o.rules.profile);
  }

  #facts(
    trigger: TriggerRow,
    subject: Subject | undefined,
    promptSecret: boolean | undefined,
  ): Facts {
    const { store, registry, identify, settings, clock } = this.#o;
    const windows = windowsOf(this.#endpoints ?? [], trigger.targetRepo, trigger.targetAgent);
    return {
      now: clock.now(),
      subject,
      target: targetOf(trigger.targetRepo, windows, registry, identify),
      ownership: "clear",
      promptSecret,
      gatesBefore: trigger.gates,
      approvals: store.journal.approvals(trigger.triggerId),
      lease: store.leases.heldOf(trigger.triggerId) === undefined ? "none" : "held",
      attempts: trigger.attempts,
      maxAttempts: settings.maxAttempts,
      nextAttemptAt: undefined, // rows that back off are not due
    };
  }

  /** Whether a held lease must end: a gate is shut now, or its offer asks for nothing any more. */
  #judge(lease: LeaseRow, trigger: TriggerRow): "keep" | "stop" {
    const source = this.#o.store.triggers.source(trigger.source, trigger.sourceId);
    if (source === undefined) return "keep";
    const decision = this.#evaluate(trigger, source.subject, false);
    if (decision.kind === "gated") return "stop";
    if (lease.state === "offered") {
      const idle = decision.kind === "not_yet" &&
        (ENDS[decision.reason] === "done" || decision.reason === "not_ready" ||
          decision.reason === "plan_not_open" || decision.reason === "dependencies_unsatisfied");
      return idle ? "stop" : "keep";
    }
    // The worker is at it: what it makes of its task supersedes nothing, but a gate stops it.
    const now = { ...trigger, sourceRevision: source.subject.revision };
    return this.#evaluate(now, source.subject, false).kind === "gated" ? "stop" : "keep";
  }

  /** Keeps what was decided; a receipt for each thing that is new (K-14). */
  #settle(trigger: TriggerRow, decision: Decision): void {
    if (decision.kind === "actionable") return;
    if (decision.kind === "gated") return this.#shut(trigger, decision);
    const { store, receipts, steady, settings } = this.#o;
    const { reason } = decision;
    const state = ENDS[reason] ?? "waiting";
    const dueAt = TIMED.includes(reason) ? steady.now() + backoffMs(settings, 1) : NEVER;
    store.triggers.update({ ...trigger, state, decision: reason, dueAt });
    if (trigger.decision === reason) return;
    receipts.write(state === "stopped" ? "stop" : "trigger", state, { trigger }, { reason });
  }

  #shut(trigger: TriggerRow, decision: Extract<Decision, { kind: "gated" }>): void {
    const { store, receipts, rules, settings, steady } = this.#o;
    const approvable = decision.gates.filter(({ gate }) =>
      !(NEVER_APPROVABLE as readonly string[]).includes(gate)
    ).map(({ gate }) => gate);
    // Both the profile and the configuration must allow another look (K-05).
    const again = mayLookAgain(rules.profile, trigger.gatedAttempts) &&
      trigger.gatedAttempts < settings.safetyGatedMaxAttempts;
    const fresh = trigger.decision !== decision.reason ||
      approvable.some((gate) => !trigger.gates.includes(gate));
    store.triggers.update({
      ...trigger,
      state: again ? "waiting" : "gated",
      decision: decision.reason,
      gates: [...new Set([...trigger.gates, ...approvable])],
      gatedAttempts: again ? trigger.gatedAttempts + 1 : trigger.gatedAttempts,
      dueAt: again ? steady.now() + backoffMs(settings, trigger.gatedAttempts + 1) : NEVER,
    });
    if (!fresh) return;
    for (const { gate, reason } of decision.gates) {
      receipts.write("gate", "gated", { trigger }, { gate, reason });
    }
  }

  #postpone({ triggerId }: TriggerRow, reason: string): void {
    const { store, steady } = this.#o;
    const trigger = store.triggers.get(triggerId)!;
    if (trigger.state !== "waiting") return;
    store.triggers.update({ ...trigger, decision: reason, dueAt: steady.now() + AGAIN_MS });
  }
}
