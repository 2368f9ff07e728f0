/** Windows that become another program: what the tests of it share. */
import { call, findSocket } from "../../lib/client.ts";
import { loadSettings } from "../../lib/config.ts";
import { World } from "./world.ts";

const AGENTS = new URL("../agents/", import.meta.url).pathname;
const quoted = (text: string) => `'${text.replaceAll("'", `'"'"'`)}'`;

/** The command line that runs a scripted worker. */
export function agent(name: string, ...args: string[]): string {
  const words = [Deno.execPath(), "run", "-A", "--quiet", "--no-lock", AGENTS + name, ...args];
  return words.map(quoted).join(" ");
}

/** What a worker logged, one JSON value a line. */
export async function logged<T>(log: string): Promise<T[]> {
  const text = await Deno.readTextFile(log).catch(() => "");
  return text.split("\n").filter((line) => line !== "").map((line) => JSON.parse(line) as T);
}

/** A world whose windows keep what they showed, and whose guard lets many messages pass. */
export async function worldOf(...repos: string[]): Promise<World> {
  const world = await World.create(repos);
  const { dir } = world;
  const history = "set -g history-limit 200000\n";
  await Deno.writeTextFile(`${dir}/home/.tmux.conf`, history, { append: true });
  await Deno.mkdir(`${dir}/config/tamq`, { recursive: true });
  const guard = "[guard]\nburst = 1000\nper_hour = 100000\n";
  await Deno.writeTextFile(`${dir}/config/tamq/config.toml`, guard);
  return world;
}

/** Pids of a window's broker and of its children, its worker above all. */
export async function processes(world: World, repo: string): Promise<string[]> {
  const pane = await world.tmux("display", "-p", "-t", await world.window(repo), "#{pane_pid}");
  const broker = pane.trim();
  const children = await Deno.readTextFile(`/proc/${broker}/task/${broker}/children`);
  return [broker, ...children.trim().split(" ")];
}

export interface Outcome {
  readonly repo: string;
  readonly broker_pid: number;
  readonly from: string | null;
  readonly to: string | null;
  readonly outcome: string;
  readonly reason: string | null;
}

/** Has the windows become `program`, by default the one under test; the service stays. */
export async function become(
  world: World,
  options: {
    readonly program?: string[];
    readonly waitMs?: number;
    readonly repos?: string[];
  } = {},
): Promise<readonly Outcome[]> {
  const settings = await loadSettings((name) => world.env[name]);
  const { program = world.argv([]), waitMs = 20_000, repos } = options;
  const request = { program, wait_ms: waitMs, ...(repos === undefined ? {} : { repos }) };
  return (await call(findSocket(settings), "upgrade", request, { timeoutMs: 90_000 })).windows;
}

export const inWords = (windows: readonly Outcome[]) =>
  windows.map(({ repo, outcome, reason }) => [repo, outcome, reason ?? ""].join(" ").trim());

/** An executable file with this shell text. */
export async function script(path: string, text: string): Promise<string> {
  await Deno.writeTextFile(path, `#!/bin/sh\n${text}\n`, { mode: 0o755 });
  return path;
}
