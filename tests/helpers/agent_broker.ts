/** A fake agent under a real broker, with a profile of its own in the broker's configuration. */
import type { Mode } from "../../lib/model/endpoint.ts";
import { CLAUDE } from "../../lib/pty/profiles/claude.ts";
import { CODEX } from "../../lib/pty/profiles/codex.ts";
import { GEMINI } from "../../lib/pty/profiles/gemini.ts";
import type { BrokerFrame } from "../../lib/protocol/schema.ts";
import { type ScriptedService, type TestBroker, withAttached } from "./broker.ts";
import { TestTerminal } from "./pty.ts";
import { withTempDir } from "./temp.ts";

const ROOT = new URL("../../", import.meta.url).pathname;
const TEXTS = { claude: CLAUDE, codex: CODEX, gemini: GEMINI };

export interface AgentBrokerOptions {
  /** `tests/agents/fake_NAME.ts`. */
  readonly fake: string;
  readonly options?: readonly string[];
  readonly profile?: keyof typeof TEXTS;
  /** Changes the text of the profile. */
  readonly edit?: (toml: string) => string;
  readonly mode?: Mode;
  /** Wraps the agent's command. */
  readonly command?: (agent: readonly string[]) => string[];
  /** Names the profile instead of leaving it to the command's name. */
  readonly named?: boolean;
  readonly size?: { readonly rows: number; readonly columns: number };
}

export interface AgentBroker extends TestBroker {
  readonly service: ScriptedService;
  readonly dir: string;
  texts(event: string): string[];
  /** All bytes that the fake read. */
  received(): string;
  /** Until the bytes that the fake read are as wanted. */
  reads(condition: (received: string) => boolean): Promise<void>;
  /** Until the fake logged so many of an event. */
  logged(event: string, count?: number): Promise<void>;
  /** Until the gate last said this reason; `""`: it is open. */
  gate(reason: string): Promise<void>;
}

export type Settle = Extract<BrokerFrame, { type: "settle" }>;
export const outcome = (
  frame: BrokerFrame,
) => [(frame as Settle).outcome, (frame as Settle).reason];

export function withAgent(
  o: AgentBrokerOptions,
  body: (agent: AgentBroker) => Promise<void>,
): Promise<void> {
  return withTempDir(async (dir) => {
    const profiles = `${dir}/.config/tamq/profiles`;
    await Deno.mkdir(profiles, { recursive: true });
    const text = TEXTS[o.profile ?? "gemini"].replace(/^name = .*$/m, 'name = "fake"')
      .replace(/^match = .*$/m, `match = ["fake_${o.fake}"]`)
      .replace(/^flags = .*$/m, "");
    await Deno.writeTextFile(`${profiles}/fake.toml`, (o.edit ?? ((same) => same))(text));
    const log = `${dir}/log`;
    const run = [Deno.execPath(), "run", "-A", "--quiet", "--no-check", "--frozen"];
    const agent = [...run, `${ROOT}tests/agents/fake_${o.fake}.ts`, log, ...o.options ?? []];
    const options = {
      command: o.command?.(agent) ?? agent,
      dir,
      terminal: new TestTerminal(o.size ?? { rows: 24, columns: 80 }),
      ...(o.mode === undefined ? {} : { mode: o.mode }),
      ...(o.named ? { profile: "fake" } : {}),
    };
    await withAttached(options, async (broker) => {
      const texts = (event: string) =>
        read(`${log}.events`).split("\n").slice(0, -1)
          .map((line) => JSON.parse(line) as { event: string; text: string })
          .filter((found) => found.event === event).map(({ text }) => text);
      const until = async (condition: () => boolean, what: string) => {
        // Another process writes the log: nothing here tells when.
        const look = setInterval(() => broker.terminal.nudge(), 20);
        try {
          await broker.terminal.when(condition, what);
        } finally {
          clearInterval(look);
        }
      };
      await body({
        ...broker,
        dir,
        texts,
        received: () => read(log),
        logged: (event, count = 1) =>
          until(() => texts(event).length >= count, `${count} ${event}`),
        reads: (condition) => until(() => condition(read(log)), "these bytes"),
        gate: (reason) =>
          broker.service.when(() => {
            const last = broker.service.frames.findLast((frame) => frame.type === "gate");
            return last?.type === "gate" && (last.reason ?? "") === reason &&
              last.open === (reason === "");
          }),
      });
    });
  });
}

function read(path: string): string {
  try {
    return Deno.readTextFileSync(path);
  } catch {
    return "";
  }
}
