/** `tamq fleet agent`: wires one host's agent and takes it down again. */
import { errorText } from "../../base/errors.ts";
import { findSocket } from "../../client.ts";
import { Credentials } from "../credentials.ts";
import { AgentService } from "../gen/agent_pb.ts";
import { DispatcherService } from "../gen/dispatcher_pb.ts";
import type { ExecutionAdapter } from "../ports.ts";
import { type FleetProcessOptions, runFleetProcess } from "../process.ts";
import { connect, ServerBuilder } from "../rpc.ts";
import { SqliteFleetStore } from "../store/sqlite.ts";
import { ActiveCalls } from "./calls.ts";
import { agentHandlers } from "./handlers.ts";
import { Keeper } from "./keeper.ts";
import { WakeAdapter } from "./wake_adapter.ts";

export interface AgentOptions extends FleetProcessOptions {
  /** HOST:PORT of the dispatcher. */
  readonly dispatcher: string;
  readonly cell: string;
  /** In place of wakes; for tests. */
  readonly adapter?: ExecutionAdapter;
  readonly everyMs?: number;
}

export async function runAgent(options: AgentOptions): Promise<void> {
  const { settings } = options;
  await runFleetProcess(options, "agent", async (parts) => {
    const { clock, random, log, stateDir, standing } = parts;
    const credentials = await Credentials.open(options.tls, clock);
    standing.push({ name: "leave certificates", run: () => credentials[Symbol.dispose]() });
    const { name: agentId } = credentials.own("agent");
    credentials.watch(log);
    const store = await SqliteFleetStore.open({
      path: `${stateDir}/agent.sqlite3`,
      clock,
      busyTimeoutMs: settings.busyTimeoutMs,
    });
    standing.push({ name: "close the database", run: () => store.close() });
    const core = {
      agentId,
      cellId: options.cell,
      bootId: parts.instance,
      store,
      adapter: options.adapter ?? new WakeAdapter({ socket: () => findSocket(settings), clock }),
      calls: new ActiveCalls(),
      clock,
      random,
      onDoubt: () => keeper.nudge(),
    };
    const link = connect(
      DispatcherService,
      options.dispatcher,
      credentials.channel("dispatcher"),
    );
    standing.push({ name: "hang up on the dispatcher", run: () => link.close() });
    const keeper = new Keeper({
      core,
      dispatcher: link.client,
      clock,
      log,
      everyMs: options.everyMs ?? 2000,
      onFenced: () => parts.end("fenced"),
    });
    const server = await new ServerBuilder({
      credentials: credentials.server(),
      address: options.listen,
      clock,
      admit: (certificate) => credentials.admit(certificate, ["dispatcher"]),
      onError: (method, error) => log.error("fleet.failed", { method, reason: errorText(error) }),
    }).add(AgentService, agentHandlers(core)).start();
    standing.push(
      { name: "finish requests", run: () => server.stop(settings.graceMs / 2) },
      { name: "stop keeping", run: () => keeper.stop() },
    );
    keeper.start();
    return server;
  });
}
