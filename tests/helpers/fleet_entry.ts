/**
 * A dispatcher or an agent as a process of its own, for tests: `fleet_entry.ts ROLE OPTIONS`, the
 * options as JSON. Its mock adapter writes what it executes into a file, so that a second execution
 * is seen whoever made it.
 */
import { runAgent } from "../../lib/fleet/agent/process.ts";
import { runDispatcher } from "../../lib/fleet/dispatcher/process.ts";
import type { Evidence, ExecutionAdapter, Work } from "../../lib/fleet/ports.ts";
import { onProbe } from "../../lib/base/probe.ts";
import { settingsIn } from "./service.ts";

export interface FleetEntry {
  readonly dir: string;
  readonly listen: string;
  readonly tls: string;
  readonly dispatcher?: string;
  /** The mock's file; without one, or with an empty name, the agent wakes for real. */
  readonly executed?: string;
  /** Dies by SIGKILL at the first arrival there. */
  readonly kill?: string;
  /** Stops itself by SIGSTOP at the first arrival there. */
  readonly stop?: string;
  readonly permitMs?: number;
  readonly callMs?: number;
  /** Settings of the agent's host, when its message service is elsewhere. */
  readonly env?: Record<string, string>;
}

/** Executes by writing a line; evidence is the line. */
class FileAdapter implements ExecutionAdapter {
  readonly kind = "mock";
  readonly pausable = true;
  constructor(readonly path: string) {}

  execute({ executionId }: Work): Promise<Evidence> {
    using file = Deno.openSync(this.path, { append: true, create: true });
    file.writeSync(new TextEncoder().encode(`${executionId}\n`));
    file.syncSync();
    return Promise.resolve(this.#evidence(executionId));
  }
  find(executionId: string): Promise<Evidence | undefined> {
    try {
      const lines = Deno.readTextFileSync(this.path).split("\n");
      return Promise.resolve(
        lines.includes(executionId) ? this.#evidence(executionId) : undefined,
      );
    } catch {
      return Promise.resolve(undefined);
    }
  }
  stop(): Promise<boolean> {
    return Promise.resolve(true);
  }
  #evidence(executionId: string): Evidence {
    return { messageId: `m-${executionId}`, messageState: "injected", outcome: "applied" };
  }
}

if (import.meta.main) {
  const [role, json] = Deno.args;
  const entry = JSON.parse(json!) as FleetEntry;
  if (entry.kill !== undefined) onProbe(entry.kill, () => Deno.kill(Deno.pid, "SIGKILL"));
  if (entry.stop !== undefined) {
    const done = onProbe(entry.stop, () => {
      done();
      Deno.stderr.writeSync(new TextEncoder().encode('{"event":"test.stopping"}\n'));
      Deno.kill(Deno.pid, "SIGSTOP");
    });
  }
  const options = {
    settings: await settingsIn(entry.dir, entry.env ?? {}),
    version: "0.0.0-test",
    listen: entry.listen,
    tls: entry.tls,
    json: true,
    level: "debug",
    everyMs: 100,
  } as const;
  if (role === "dispatcher") {
    const { permitMs, callMs } = entry;
    await runDispatcher({
      ...options,
      ...(permitMs === undefined ? {} : { permitMs }),
      ...(callMs === undefined ? {} : { callMs }),
    });
  } else {
    const adapter = !entry.executed ? {} : { adapter: new FileAdapter(entry.executed) };
    await runAgent({ ...options, dispatcher: entry.dispatcher!, cell: "cell1", ...adapter });
  }
  Deno.exit(0);
}
