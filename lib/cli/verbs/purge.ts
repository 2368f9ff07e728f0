/** `tamq purge`: counts first, asks, may export, and only then removes. */
import { displaySafe } from "../../base/display.ts";
import { TamqError } from "../../base/errors.ts";
import { rfc3339 } from "../../base/clock.ts";
import { call, findSocket } from "../../client.ts";
import { loadSettings, type Settings } from "../../config.ts";
import {
  DEFAULT_BEFORE,
  DEFAULT_MAX_BYTES,
  type PurgeableState,
  purgeChoice,
  type PurgeFilters,
} from "../../model/purge.ts";
import type { OfflinePurge } from "../../purge_offline.ts";
import type { RequestOf, ResponseOf } from "../../protocol/operations.ts";
import type { Verb } from "../command.ts";
import type { CliContext } from "../context.ts";
import { usageError } from "../errors.ts";
import { openExportFile } from "../export_file.ts";
import { late } from "../late.ts";
import { countedMessages, grouped, type Progress, progress } from "../progress.ts";
import { megabytes, parseSize } from "../sizes.ts";
import { parseTime } from "../times.ts";
import { openHistory } from "./open_history.ts";

export interface PurgeFlags {
  readonly before?: string;
  readonly maxSize?: string;
  readonly repo?: string;
  readonly state?: PurgeableState;
  readonly export?: string;
  readonly yes?: boolean;
  readonly dryRun?: boolean;
  readonly json?: boolean;
}

type Request = RequestOf<"purge">;
type Answer = ResponseOf<"purge">;
/** What the command counted: the answer to a `purge` that executes nothing. */
type Plan = Pick<Answer, "messages" | "bytes" | "oldest_at" | "newest_at" | "history_bytes"> & {
  readonly through: number | undefined;
};

/** One request works half a second, or a few when the disk is busy. */
const TIMEOUT_MS = 60_000;
/** Against an export that misses what changed while it was written. */
const SETTLED_MS = 5000;
/** Pages that are only partly empty stay: a size may take more than one purge to reach. */
const MAX_ROUNDS = 5;

const purge: Verb<PurgeFlags> = async function (flags) {
  if (flags.export === "-") {
    throw usageError("--export needs a file", "or write it before: tamq export > FILE");
  }
  const request = requestOf(flags, this.clock.now());
  const settings = await loadSettings(this.env);
  const plan = await count(this, settings, request);
  if (plan === undefined) return;
  const ask = this.stdinIsTerminal() && this.stdoutIsTerminal() && !flags.json;
  const nothing = plan.messages === 0;
  if (nothing || flags.dryRun || (!flags.yes && !ask)) {
    if (flags.json) this.out(JSON.stringify({ dry_run: true, ...planRecord(request, plan) }));
    else if (nothing) this.out(`nothing to purge; ${filterText(request)}`);
    else {
      this.out(planText(request, plan));
      this.out("dry run: nothing was purged; add --yes to purge");
    }
    return;
  }
  if (!flags.json) this.out(planText(request, plan));
  if (!flags.yes) {
    await this.flush();
    const answer = await this.ask(`Purge ${countedMessages(plan.messages)}? Type yes: `);
    if (answer !== "yes") return this.out("nothing was purged");
  }
  await execute(this, settings, request, plan, flags);
};
export default purge;

/** Without filters the documented defaults. */
function requestOf(flags: PurgeFlags, now: number): Request {
  const { repo, state } = flags;
  let { before, maxSize } = flags;
  if ([before, maxSize, repo, state].every((filter) => filter === undefined)) {
    before = DEFAULT_BEFORE;
    maxSize = String(DEFAULT_MAX_BYTES);
  }
  return {
    ...(before === undefined ? {} : { before: parseTime(before, now, "--before") }),
    ...(maxSize === undefined ? {} : { max_bytes: parseSize(maxSize, "--max-size") }),
    ...(repo === undefined ? {} : { repo }),
    ...(state === undefined ? {} : { state }),
    ...(flags.export === undefined ? {} : { settled_before: rfc3339(now - SETTLED_MS) }),
  };
}

/** Counted from the database itself, so that the service is not held up and need not run. */
async function count(
  context: CliContext,
  settings: Settings,
  request: Request,
): Promise<Plan | undefined> {
  const db = await openHistory(context, settings);
  if (db === undefined) return undefined;
  try {
    const { countPurge } = await late("purge_offline");
    const plan = countPurge(db, purgeChoice(request), request.max_bytes);
    const { oldestAt, newestAt, historyBytes, messages, bytes, through } = plan;
    return {
      messages,
      bytes,
      oldest_at: oldestAt === null ? null : rfc3339(oldestAt),
      newest_at: newestAt === null ? null : rfc3339(newestAt),
      history_bytes: historyBytes,
      through,
    };
  } finally {
    db.close();
  }
}

async function execute(
  context: CliContext,
  settings: Settings,
  request: Request,
  first: Plan,
  flags: PurgeFlags,
): Promise<void> {
  const service = await connectService(settings);
  using offline = service === undefined ? await openOffline(settings) : undefined;
  const perform = service ?? offline!.purge;
  const shown = progress(context, false);
  const receipts: number[] = [];
  let messages = 0;
  let bytes = 0;
  let left = first.history_bytes;
  let plan: Plan | undefined = first;
  for (let round = 0; plan !== undefined && plan.messages > 0 && round < MAX_ROUNDS; round++) {
    const chosen: Request = {
      ...request,
      ...(plan.through === undefined ? {} : { through: String(plan.through) }),
    };
    if (flags.export !== undefined) {
      await exportChosen(context, settings, chosen, flags.export, shown);
    }
    let answer: Answer = await perform({ ...chosen, execute: true });
    while (!answer.done) {
      const done = messages + answer.messages;
      const total = messages + plan.messages;
      shown.show(() => `purged ${grouped(done)} of ${countedMessages(total)}`);
      answer = await perform({ execute: true, receipt_id: answer.receipt_id! });
    }
    receipts.push(answer.receipt_id!);
    messages += answer.messages;
    bytes += answer.bytes;
    left = answer.history_bytes;
    if (request.max_bytes === undefined || left <= request.max_bytes) break;
    plan = await count(context, settings, request);
  }
  offline?.shrink();
  shown.end();
  if (flags.json) {
    const record = { dry_run: false, ...filterRecord(request), messages, bytes };
    context.out(JSON.stringify({ ...record, history_bytes: left, receipts }));
  } else {
    context.out(
      `purged ${countedMessages(messages)}, about ${megabytes(bytes)}; ` +
        `the history has ${megabytes(left)} (receipt ${receipts.join(", ")})`,
    );
  }
}

/** How the running service purges; undefined when none runs. */
async function connectService(settings: Settings): Promise<OfflinePurge["purge"] | undefined> {
  const socket = findSocket(settings);
  try {
    await call(socket, "ping", {});
  } catch (error) {
    if (error instanceof TamqError && error.reason === "service_unavailable") return undefined;
    throw error;
  }
  return (request) => call(socket, "purge", request, { timeoutMs: TIMEOUT_MS });
}

async function openOffline(settings: Settings): Promise<OfflinePurge> {
  const { openOfflinePurge } = await late("purge_offline");
  return await openOfflinePurge(settings);
}

async function exportChosen(
  context: CliContext,
  settings: Settings,
  chosen: PurgeFilters,
  path: string,
  shown: Progress,
): Promise<void> {
  const { exportLines } = await late("store/export");
  const db = await openHistory(context, settings);
  if (db === undefined) return;
  try {
    using output = openExportFile(path);
    let lines = 0;
    for (const page of exportLines(db, {}, purgeChoice(chosen))) {
      output.write(page);
      lines += page.length;
      shown.show(() => `exported ${countedMessages(lines)}`);
    }
    output.finish(); // on disk before the first one goes
    shown.end();
    context.err(`exported ${countedMessages(lines)} to ${displaySafe(path)}`);
  } finally {
    db.close();
  }
}

function filterRecord(request: Request) {
  const { before = null, max_bytes = null, repo = null, state = null } = request;
  return { before, max_bytes, repo, state };
}

function planRecord(request: Request, plan: Plan) {
  const { through: _, ...counted } = plan;
  return { ...filterRecord(request), ...counted };
}

function planText(request: Request, plan: Plan): string {
  const range = `admitted from ${plan.oldest_at} to ${plan.newest_at}`;
  return `${countedMessages(plan.messages)}, about ${megabytes(plan.bytes)}, ${range}\n` +
    filterText(request) + `\nthe history has ${megabytes(plan.history_bytes)}`;
}

function filterText({ before, max_bytes, repo, state }: Request): string {
  const parts = [
    before && `admitted before ${before}`,
    repo && `from or to ${displaySafe(repo)}`,
    state && state,
    max_bytes !== undefined && `the oldest until the history fits ${megabytes(max_bytes)}`,
  ].filter((part) => typeof part === "string");
  return `chosen: ${parts.join("; or ")}`;
}
