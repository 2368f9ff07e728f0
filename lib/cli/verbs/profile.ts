/** `tamq profile list|show|test`. */
import { pause } from "../../base/clock.ts";
import { displaySafe, displaySafeBlock } from "../../base/display.ts";
import { TamqError } from "../../base/errors.ts";
import { selfCommand } from "../../base/self.ts";
import { loadSettings } from "../../config.ts";
import { launchFor, profileEntries, profileEntry } from "../../launch.ts";
import type { ProbeReport } from "../../profile_probe.ts";
import { literal, Tmux } from "../../tmux/client.ts";
import { reasonWords } from "../attempt_words.ts";
import type { Verb } from "../command.ts";
import { requireCommand } from "../find_command.ts";
import { late } from "../late.ts";
import { type Look, lookOf, table } from "../layout.ts";
import { windowEnvironment } from "../window_environment.ts";
import { quoteWord, splitWords } from "../words.ts";
import type { JsonFlag } from "./service.ts";

export interface TestFlags extends JsonFlag {
  readonly profile?: string;
  readonly bare?: boolean;
  readonly report?: string;
}

export const list: Verb<JsonFlag> = async function ({ json }) {
  const entries = await profileEntries(await loadSettings(this.env));
  if (json) {
    for (const { name, match, file } of entries) this.out(JSON.stringify({ name, match, file }));
    return;
  }
  this.out(table(
    [
      ["PROFILE", "COMMANDS", "SOURCE"],
      ...entries.map(({ name, match, file }) => [
        name,
        match.length > 0 ? match.join(" ") : "every other",
        file ?? "built in",
      ]),
    ],
    lookOf(this),
    { header: true },
  ));
};

export const show: Verb<Record<never, never>, [string]> = async function (_flags, name) {
  const { text } = await profileEntry(name, await loadSettings(this.env));
  this.out(
    text === "" ? `# ${name}: programs that no other profile is for; nothing to set` : text.trim(),
  );
};

/** Longer than the probe itself takes, starting the program included. */
const PROBE_MS = 40_000;
const POLL_MS = 100;
const SIZE = ["-x", "100", "-y", "40"];

export const test: Verb<TestFlags, string[]> = async function (flags, ...given) {
  const settings = await loadSettings(this.env);
  // In one word as for --command of `tamq start`, or as words of their own.
  const command = given.length === 1 ? splitWords(given[0]!) : given;
  const wish = {
    command,
    ...(flags.profile === undefined ? {} : { profile: flags.profile }),
    ...(flags.bare ? { bare: true } : {}),
  };
  if (flags.report !== undefined) {
    // Inside the private window.
    const { probeProfile } = await late("profile_probe");
    const report = await probeProfile({ ...wish, directory: Deno.cwd(), settings });
    await Deno.writeTextFile(`${flags.report}.part`, JSON.stringify(report), { mode: 0o600 });
    await Deno.rename(`${flags.report}.part`, flags.report);
    return;
  }
  requireCommand(command[0]!, this.env, [Deno.cwd()]);
  const { profile } = await launchFor(wish, settings, this.env); // complaints belong here
  const dir = await Deno.makeTempDir({ prefix: "tamq-profile-" });
  const tmux = new Tmux({ path: `${dir}/tmux` });
  try {
    const file = `${dir}/report.json`;
    const argv = selfCommand([
      ...["profile", "test", `--report=${file}`],
      ...flags.profile === undefined ? [] : [`--profile=${flags.profile}`],
      ...flags.bare ? ["--bare"] : [],
      "--",
      ...command.length === 1 ? command.map(quoteWord) : command, // one word is split again
    ]);
    this.err(`running ${displaySafe(command.map(quoteWord).join(" "))} as ${profile.name} …`);
    const env = windowEnvironment(this.env, new Set());
    const set = Object.entries(env).flatMap(([name, value]) => ["-e", `${name}=${value}`]);
    // The folder is inherited, not named: tmux would expand it.
    await tmux.run(
      "-f",
      "/dev/null",
      "new-session",
      "-d",
      ...SIZE,
      ...set,
      "--",
      ...argv.map(literal),
    );
    const report = await awaited(file, this.clock);
    if (flags.json) this.out(JSON.stringify(report));
    else this.out(words(report, lookOf(this)));
    return deliverable(report) ? 0 : 1;
  } finally {
    await tmux.attempt("kill-server");
    await Deno.remove(dir, { recursive: true });
  }
};

async function awaited(
  file: string,
  clock: Parameters<typeof pause>[0],
): Promise<ProbeReport> {
  for (const end = clock.monotonic() + PROBE_MS; clock.monotonic() < end;) {
    try {
      return JSON.parse(await Deno.readTextFile(file)) as ProbeReport;
    } catch (error) {
      if (!(error instanceof Deno.errors.NotFound)) throw error;
      await pause(clock, POLL_MS);
    }
  }
  throw new TamqError("DEADLINE_EXCEEDED", "probe_timeout", "the private window gave no report", {
    hint: "run the command by itself to see what it says",
  });
}

function deliverable({ seen, exit, plain }: ProbeReport): boolean {
  if (exit !== null) return false;
  if (seen === null) return plain === "shell" || plain === "lines";
  return (seen.state === "ready" && seen.at_terminal && seen.bracketed_paste);
}

const PLAIN_WORDS: Readonly<Record<NonNullable<ProbeReport["plain"]>, string>> = {
  shell: "are shown in the window; nothing is typed at a shell",
  full_screen: "wait until it ends: a full-screen program without a profile gets none",
  lines: "are typed as lines, once it reads them",
  unknown: "would wait: what reads the terminal cannot be looked into (ssh, sudo, a container)",
};

function words(report: ProbeReport, look: Look): string {
  const { profile, added, seen, exit } = report;
  const yes = (value: boolean) => value ? "yes" : "no";
  const rows: [string, string][] = [
    ["profile", profile],
    ["adds", added.map(quoteWord).join(" ") || "nothing"],
  ];
  if (exit !== null) rows.push(["ended", `with status ${exit}`]);
  if (seen === null) {
    if (report.plain !== null) rows.push(["messages", PLAIN_WORDS[report.plain]]);
    return table(rows, look);
  }
  const line = seen.line_empty === null ? "not found" : seen.line_empty ? "empty" : "holds text";
  rows.push(
    ["at the terminal", yes(seen.at_terminal)],
    ["bracketed paste", yes(seen.bracketed_paste)],
    ["alternate screen", yes(seen.alternate_screen)],
    ["reports", seen.reported ?? "nothing"],
    ["title", seen.title],
    ["its line", line],
    [
      "state",
      seen.state === seen.reason ? seen.state : `${seen.state}: ${reasonWords(seen.reason)}`,
    ],
    ["after", `${(report.took_ms / 1000).toFixed(1)} s`],
    ["messages", deliverable(report) ? "can be delivered" : "would wait: nothing is written to it"],
  );
  const shown = deliverable(report)
    ? ""
    : `\n\nIts screen:\n${displaySafeBlock(seen.screen.join("\n"), "  │ ")}`;
  return table(rows, look) + shown;
}
