/** `tamq fleet dispatcher`: wires a dispatcher and takes it down again. */
import { AgentService } from "../gen/agent_pb.ts";
import { DispatcherService } from "../gen/dispatcher_pb.ts";
import { OperatorService } from "../gen/operator_pb.ts";
import { Credentials } from "../credentials.ts";
import { type FleetProcessOptions, runFleetProcess } from "../process.ts";
import { type Client, connect, type Handlers, ServerBuilder } from "../rpc.ts";
import type { Peer, Role } from "../identity.ts";
import { SqliteFleetStore } from "../store/sqlite.ts";
import { errorText, TamqError } from "../../base/errors.ts";
import { becomeActive } from "./core.ts";
import { Driver } from "./driver.ts";
import { dispatcherHandlers } from "./handlers.ts";
import { operatorHandlers } from "./operator.ts";

export interface DispatcherOptions extends FleetProcessOptions {
  /** How long a permit is good for, milliseconds. */
  readonly permitMs?: number;
  /** Between two turns when nothing happens, milliseconds. */
  readonly everyMs?: number;
  /** For one call to an agent, milliseconds. */
  readonly callMs?: number;
}

export async function runDispatcher(options: DispatcherOptions): Promise<void> {
  await runFleetProcess(options, "dispatcher", async (parts) => {
    const { clock, random, log, stateDir, standing } = parts;
    const credentials = await Credentials.open(options.tls, clock);
    standing.push({ name: "leave certificates", run: () => credentials[Symbol.dispose]() });
    const { name } = credentials.own("dispatcher");
    credentials.watch(log);
    const store = await SqliteFleetStore.open({
      path: `${stateDir}/dispatcher.sqlite3`,
      clock,
      busyTimeoutMs: options.settings.busyTimeoutMs,
    });
    standing.push({ name: "close the database", run: () => store.close() });
    const base = { store, clock, random };
    const epoch = await becomeActive(base, `${name}/${parts.instance}`);
    const core = { ...base, epoch, permitMs: options.permitMs ?? 60_000 };
    const agents = new Agents(credentials);
    standing.push({ name: "hang up on agents", run: () => agents.close() });
    const agent = agents.client.bind(agents);
    const { everyMs = 1000, callMs = 10_000 } = options;
    const driver = new Driver({ core, agent, clock, log, everyMs, callMs });
    const nudge = () => driver.nudge();
    const server = await new ServerBuilder({
      credentials: credentials.server(),
      address: options.listen,
      clock,
      admit: (certificate) => credentials.admit(certificate, ["agent", "operator"]),
      onError: (method, error) => log.error("fleet.failed", { method, reason: errorText(error) }),
    })
      .add(DispatcherService, forRole("agent", nudging(dispatcherHandlers(core), nudge)))
      .add(OperatorService, forRole("operator", operatorHandlers({ core, agent, onChange: nudge })))
      .start();
    standing.push(
      { name: "finish requests", run: () => server.stop(options.settings.graceMs / 2) },
      { name: "stop driving", run: () => driver.stop() },
    );
    driver.start();
    return server;
  });
}

/** A joining agent may have work waiting for it. */
function nudging(
  handlers: Handlers<typeof DispatcherService>,
  nudge: () => void,
): Handlers<typeof DispatcherService> {
  return {
    ...handlers,
    async activateAgent(request, context) {
      const answer = await handlers.activateAgent(request, context);
      nudge();
      return answer;
    },
  };
}

/** Handlers that only one role reaches. */
function forRole<H extends object>(role: Role, handlers: H): H {
  type Handler = (request: unknown, context: { readonly peer: Peer }) => Promise<unknown>;
  const entries = Object.entries(handlers as Record<string, Handler>).map(([name, handler]) => [
    name,
    async (request: unknown, context: { readonly peer: Peer }) => {
      if (context.peer.role === role) return await handler(request, context);
      throw new TamqError("PERMISSION_DENIED", "role_denied", `${name} is for the ${role} alone`, {
        hint: `use a certificate of role ${role}`,
      });
    },
  ]);
  return Object.fromEntries(entries) as H;
}

/** One connection an agent, kept. */
class Agents {
  readonly #open = new Map<string, ReturnType<typeof connect<typeof AgentService>>>();
  constructor(readonly credentials: Credentials) {}

  client(agentId: string, address: string): Client<typeof AgentService> {
    const key = `${agentId} ${address}`;
    let link = this.#open.get(key);
    if (link === undefined) {
      link = connect(AgentService, address, this.credentials.channel("agent", agentId));
      this.#open.set(key, link);
    }
    return link.client;
  }

  close(): void {
    for (const link of this.#open.values()) link.close();
  }
}
