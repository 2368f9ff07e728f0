/** `tamq upgrade` (B-17). */
import { pause } from "../../base/clock.ts";
import { displaySafe } from "../../base/display.ts";
import { TamqError } from "../../base/errors.ts";
import { importLate } from "../../base/late.ts";
import { selfCommand } from "../../base/self.ts";
import { loadSettings, type Settings } from "../../config.ts";
import { gitaRegistry } from "../../gita.ts";
import { HANDOVER_FORMATS } from "../../handover.ts";
import { launchFor } from "../../launch.ts";
import type { ResponseOf } from "../../protocol/operations.ts";
import { startDetached, stopService } from "../../service_control.ts";
import { runsInUnit, UNIT_NAME } from "../../systemd_unit.ts";
import type { Verb } from "../command.ts";
import type { CliContext } from "../context.ts";
import { EXIT } from "../exit_codes.ts";
import { late } from "../late.ts";
import { lookOf, table } from "../layout.ts";
import { requireRepositories } from "../targets.ts";
import { VERSION } from "../version.ts";
import { ask, type JsonFlag } from "./service.ts";

export interface UpgradeFlags extends JsonFlag {
  readonly dryRun?: boolean;
  readonly wait?: number;
  readonly check?: boolean;
  readonly profile?: string;
}

type Result = ResponseOf<"upgrade">["windows"][number];
interface ServiceSeen {
  readonly version: string;
  readonly pid: number;
}

const WAIT_S = 10;
/** Windows attach again within a second after the service is back; a loaded machine gets more. */
const ATTACH_MS = 15_000;
const POLL_MS = 50;
/** Longer than the longest pause of a window between two looks for the service. */
const SETTLE_MS = 2000;
/** For an answer about all windows: some dozens of them, a few at a time. */
const ANSWER_MS = 300_000;

const upgrade: Verb<UpgradeFlags, string[]> = async function (flags, ...names) {
  if (flags.check) return await check(this, flags.profile ?? "plain");
  const settings = await loadSettings(this.env);
  requireRepositories(gitaRegistry(this.env), names);
  const repos = names.length === 0 ? undefined : [...new Set(names)];
  const waitMs = (flags.wait ?? WAIT_S) * 1000;
  const before = await running(this, settings);
  // Whoever may not do this learns it before anything is stopped.
  const expected = before === undefined ? [] : await planned(this, settings, repos);
  if (flags.dryRun) return tell(this, flags, before, undefined, expected);
  const after = await restart(this, settings, before);
  if (before === undefined) await settle(this, settings); // nobody could say which windows live
  const missing = await comeBack(this, settings, expected, repos);
  const { windows } = await ask(this, "upgrade", {
    program: selfCommand([]),
    wait_ms: waitMs,
    ...(repos === undefined ? {} : { repos }),
  }, { settings, timeoutMs: ANSWER_MS + waitMs });
  return tell(this, flags, before, after, [...windows, ...missing]);
};
export default upgrade;

/** Undefined when none runs. */
async function running(context: CliContext, settings: Settings): Promise<ServiceSeen | undefined> {
  try {
    return await ask(context, "ping", {}, { settings });
  } catch (error) {
    if (error instanceof TamqError && error.reason === "service_unavailable") return undefined;
    throw error;
  }
}

/** Windows as any service tells them, without their versions. */
async function attached(
  context: CliContext,
  settings: Settings,
  repos: readonly string[] | undefined,
): Promise<Result[]> {
  const { endpoints } = await ask(context, "endpoints", {}, { settings });
  return endpoints.flatMap(({ endpoint_id, attachments }) =>
    attachments.filter(({ repo }) => repos?.includes(repo) ?? true).map((one) => ({
      repo: one.repo,
      endpoint_id,
      window_id: one.window_id,
      broker_pid: one.broker_pid,
      from: null,
      to: null,
      outcome: "planned" as const,
      reason: null,
    }))
  );
}

async function planned(
  context: CliContext,
  settings: Settings,
  repos: string[] | undefined,
): Promise<readonly Result[]> {
  try {
    const request = { program: selfCommand([]), wait_ms: 0, dry_run: true };
    const only = repos === undefined ? {} : { repos };
    return (await ask(context, "upgrade", { ...request, ...only }, { settings })).windows;
  } catch (error) {
    const older = error instanceof TamqError && error.reason === "unknown_op";
    if (older) return await attached(context, settings, repos);
    throw error;
  }
}

/** The same service as this program; messages are spooled meanwhile, and what is stored stays. */
async function restart(
  context: CliContext,
  settings: Settings,
  before: ServiceSeen | undefined,
): Promise<ServiceSeen> {
  if (before !== undefined && runsInUnit(before.pid)) {
    const { systemctl } = await late("cli/verbs/service_unit");
    await systemctl(context, "restart", UNIT_NAME);
  } else {
    await stopService(settings);
  }
  await startDetached(settings);
  return await ask(context, "ping", {}, { settings });
}

/** Waits until no further window has attached to a service that was just started. */
async function settle(context: CliContext, settings: Settings): Promise<void> {
  const end = context.clock.monotonic() + ATTACH_MS;
  let count = 0;
  let since = context.clock.monotonic();
  for (;;) {
    const here = (await attached(context, settings, undefined)).length;
    const now = context.clock.monotonic();
    if (here !== count) since = now;
    count = here;
    if (now - since >= SETTLE_MS || now >= end) return;
    await pause(context.clock, POLL_MS);
  }
}

/** Waits until the windows of before are attached again; those that are not in time. */
async function comeBack(
  context: CliContext,
  settings: Settings,
  expected: readonly Result[],
  repos: readonly string[] | undefined,
): Promise<Result[]> {
  const end = context.clock.monotonic() + ATTACH_MS;
  for (;;) {
    const here = new Set((await attached(context, settings, repos)).map((one) => one.broker_pid));
    const missing = expected.filter(({ broker_pid }) => !here.has(broker_pid));
    if (missing.length === 0) return [];
    if (context.clock.monotonic() >= end) {
      const reason = "it did not attach again: see what its window says";
      return missing.map((one) => ({ ...one, outcome: "unchanged", to: one.from, reason }));
    }
    await pause(context.clock, POLL_MS);
  }
}

function tell(
  context: CliContext,
  { json, dryRun }: UpgradeFlags,
  before: ServiceSeen | undefined,
  after: ServiceSeen | undefined,
  windows: readonly Result[],
): number {
  const stay = windows.filter(({ outcome }) => outcome === "unchanged");
  if (json) {
    const service = {
      from: before?.version ?? null,
      to: after?.version ?? null,
      pid: after?.pid ?? before?.pid ?? null,
    };
    context.out(JSON.stringify({ program: VERSION, service, windows }));
  } else {
    const was = before === undefined ? "was not running" : `version ${before.version}`;
    if (dryRun) context.out(`service: ${was}, would become ${VERSION}`);
    else context.out(`service: ${was}, now ${after!.version} (pid ${after!.pid})`);
    const rows = windows.map((one) => [
      displaySafe(one.repo),
      one.window_id,
      one.from ?? "?",
      displaySafe(wordsFor(one)),
    ]);
    if (rows.length > 0) {
      context.out(
        table([["REPO", "WINDOW", "WAS", "NOW"], ...rows], lookOf(context), { header: true }),
      );
    } else context.out("no window is attached");
  }
  return stay.length === 0 ? EXIT.ok : EXIT.failure;
}

function wordsFor({ outcome, to, reason }: Result): string {
  if (outcome === "upgraded") return to ?? "?";
  if (outcome === "planned") return `would become ${VERSION}`;
  return outcome === "gone" ? "ended meanwhile" : `unchanged: ${reason}`;
}

/**
 * What a broker asks before it becomes this program: whether it starts here, finds its parts, can
 * read its settings and knows the broker's profile, and from which formats it goes on.
 */
async function check(context: CliContext, profile: string): Promise<void> {
  const settings = await loadSettings(context.env);
  await launchFor({ command: ["true"], profile, bare: true }, settings, context.env);
  await late("cli/verbs/broker");
  const { loadModel } = await importLate<typeof import("../../agent_side.ts")>("agent_side");
  await loadModel();
  context.out(JSON.stringify({ formats: HANDOVER_FORMATS, version: VERSION }));
}
