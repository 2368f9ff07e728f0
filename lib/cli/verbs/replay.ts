/** `tamq replay` (Q-06, T-20): a file of messages, sent again through the service's own checks. */
import { displaySafe } from "../../base/display.ts";
import { TamqError, type WireError } from "../../base/errors.ts";
import { newId } from "../../base/ids.ts";
import { systemRandom } from "../../base/random.ts";
import { call, findSocket } from "../../client.ts";
import { loadSettings } from "../../config.ts";
import type { Verb } from "../command.ts";
import type { CliContext } from "../context.ts";
import { usageError } from "../errors.ts";
import { EXIT } from "../exit_codes.ts";
import { grouped, progress } from "../progress.ts";
import { fileChunks, type Pack, packs } from "../replay_file.ts";

export interface ReplayFlags {
  readonly endpoint?: string;
  readonly strict?: boolean;
  readonly dryRun?: boolean;
  readonly json?: boolean;
}

interface Counts {
  sent: number;
  deduplicated: number;
  bad: number;
}

/** A request of many messages on a disk that is busy. */
const TIMEOUT_MS = 60_000;

const replay: Verb<ReplayFlags, [string]> = async function (flags, file) {
  const { endpoint, strict = false, dryRun = false, json = false } = flags;
  if (endpoint === undefined) {
    throw usageError("no endpoint is given", "tamq replay FILE --endpoint ID; see: tamq endpoints");
  }
  const socket = findSocket(await loadSettings(this.env));
  await requireEndpoint(socket, endpoint);
  const batch = newId(this.clock, systemRandom);
  const counts: Counts = { sent: 0, deduplicated: 0, bad: 0 };
  const shown = progress(this, false);
  const send = async (pack: Pack) => {
    const results = pack.entries.length === 0 ? [] : (await call(socket, "replay", {
      batch,
      endpoint_id: endpoint,
      entries: [...pack.entries],
      strict,
      dry_run: dryRun,
    }, { timeoutMs: TIMEOUT_MS })).results;
    tell(this, pack, results, counts, json);
    shown.show(() => `${grouped(counts.sent + counts.deduplicated + counts.bad)} messages`);
  };

  let begun = false;
  let failure: unknown;
  let sending = Promise.resolve();
  try {
    // One request is under way while the next is read: the order stays that of the file.
    for await (const pack of packs(fileChunks(this, file), strict)) {
      begun = true;
      await sending;
      if (strict && counts.bad > 0) break;
      sending = send(pack);
      sending.catch(() => {}); // awaited in the next turn
    }
    await sending;
  } catch (error) {
    failure = error;
    await sending.catch(() => {});
  }
  shown.end();
  if (failure !== undefined && !begun && !json) throw failure; // nothing to sum up or to repeat
  summary(this, batch, counts, { dryRun, json, complete: failure === undefined });
  if (failure !== undefined) throw repeatable(failure);
  return counts.bad === 0 ? EXIT.ok : EXIT.failure;
};
export default replay;

/** Before anything is read: one clear refusal, not one a line. */
async function requireEndpoint(socket: string, wanted: string): Promise<void> {
  const { endpoints } = await call(socket, "endpoints", {});
  if (endpoints.some(({ endpoint_id }) => endpoint_id === wanted)) return;
  const live = endpoints.map(({ endpoint_id }) => endpoint_id).join(", ");
  throw new TamqError("UNAVAILABLE", "endpoint_unavailable", `endpoint ${wanted} is not live`, {
    hint: live === "" ? "no endpoint is; open one with: tamq start" : `live are: ${live}`,
  });
}

type Result =
  | { readonly ok: true; readonly deduplicated: boolean }
  | { readonly ok: false; readonly error: Omit<WireError, "retry"> };

/** Counts, and says of each bad line what is wrong with it, in the order of the lines. */
function tell(
  context: CliContext,
  { lines }: Pack,
  results: readonly Result[],
  counts: Counts,
  json: boolean,
): void {
  let next = 0;
  for (const line of lines) {
    let error: { reason: string; message: string };
    if ("bad" in line) error = line.bad;
    else {
      const result = results[next++];
      if (result === undefined) return; // --strict ended it before
      if (result.ok) {
        if (result.deduplicated) counts.deduplicated++;
        else counts.sent++;
        continue;
      }
      error = result.error;
    }
    counts.bad++;
    const { reason, message } = error;
    if (json) context.err(JSON.stringify({ line: line.line, reason, message }));
    else context.err(`tamq: line ${line.line}: ${displaySafe(message)}`);
  }
}

function summary(
  context: CliContext,
  batch: string,
  counts: Counts,
  { dryRun, json, complete }: { dryRun: boolean; json: boolean; complete: boolean },
): void {
  if (json) {
    const record = { batch: dryRun ? null : batch, ...counts, dry_run: dryRun, complete };
    context.out(JSON.stringify(record));
    return;
  }
  const text = `${grouped(counts.sent)} ${dryRun ? "to send" : "sent"}, ` +
    `${grouped(counts.deduplicated)} deduplicated, ${grouped(counts.bad)} bad`;
  context.out(dryRun ? `dry run: ${text}` : `batch ${batch}: ${text}`);
}

/** Whatever ended it in the middle: what was sent is known by its key. */
function repeatable(error: unknown): unknown {
  if (!(error instanceof TamqError) || error.code === "INVALID_ARGUMENT") return error;
  return new TamqError(error.code, error.reason, error.message, {
    hint: `${error.hint === undefined ? "" : `${error.hint}; `}then replay the file again: ` +
      "what was sent is recognised and not sent twice",
    cause: error,
  });
}
