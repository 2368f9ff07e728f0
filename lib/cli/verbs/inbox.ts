/** `tamq inbox [REPO]`: what waits for a repository and what came to it. */
import { ancestry } from "../../base/proc.ts";
import { windowOfAncestry } from "../../broker_process.ts";
import { loadSettings } from "../../config.ts";
import { gitaRegistry } from "../../gita.ts";
import { senderLabel } from "../../model/envelope.ts";
import type { WireMessage } from "../../protocol/schema.ts";
import type { ColorFlag } from "../colour.ts";
import type { Verb } from "../command.ts";
import { usageError } from "../errors.ts";
import { late } from "../late.ts";
import { type Look, lookOf, table } from "../layout.ts";
import { messageEntry, relativeTime, stateStyle } from "../render.ts";
import { requireRepositories } from "../targets.ts";
import { waitingReasons } from "../waiting_reasons.ts";
import { openHistory } from "./open_history.ts";

export interface InboxFlags extends ColorFlag {
  readonly limit?: number;
  readonly full?: boolean;
  readonly json?: boolean;
}

const DEFAULT_RECENT = 10;

const inbox: Verb<InboxFlags, [string?]> = async function (flags, named) {
  const repo = named ?? windowOfAncestry(ancestry(Deno.pid));
  if (repo === undefined) {
    throw usageError(
      "no repository is given, and this is no window of tamq's",
      "name one: tamq inbox REPO",
    );
  }
  const settings = await loadSettings(this.env);
  const db = await openHistory(this, settings);
  let found = { waiting: [] as WireMessage[], more: 0, recent: [] as WireMessage[] };
  if (db !== undefined) {
    const { readInbox } = await late("store/history");
    try {
      found = readInbox(db, repo, flags.limit ?? DEFAULT_RECENT);
    } finally {
      db.close();
    }
  }
  if (found.waiting.length + found.recent.length === 0) {
    // A name that nobody has gets no messages: said, with the nearest names.
    requireRepositories(gitaRegistry(this.env), [repo]);
  }
  const reasons = found.waiting.length === 0
    ? new Map<string, string>()
    : await waitingReasons(this, { repo });
  const waiting = found.waiting.map((message) => ({
    ...message,
    waiting_reason: reasons.get(message.message_id) ?? message.waiting_reason,
  }));
  if (flags.json) {
    for (const message of [...waiting, ...found.recent]) this.out(JSON.stringify(message));
    return;
  }
  const now = this.clock.now();
  const look = lookOf(this, flags);
  const show = (title: string, messages: readonly WireMessage[]) => {
    if (messages.length === 0) return;
    this.out(look.paint("bold", title));
    this.out(
      flags.full
        ? messages.map((one) => messageEntry(one, now, { full: true, look })).join("\n")
        : rows(messages, now, look),
    );
  };
  const more = found.more === 0 ? "" : ` (and ${found.more} more: tamq history --state pending)`;
  show(`WAITING${more}`, waiting);
  if (waiting.length > 0 && found.recent.length > 0) this.out("");
  show("RECENT", found.recent);
  if (waiting.length + found.recent.length === 0) this.err("nothing waits, nothing came");
};
export default inbox;

function rows(messages: readonly WireMessage[], now: number, look: Look): string {
  return table(
    messages.map((message) => {
      const why = message.state === "failed" ? message.last_failure_reason : message.waiting_reason;
      const state = why === null ? message.state : `${message.state} (${why})`;
      return [
        `  ${message.message_id}`,
        senderLabel(message.sender_repo, message.provenance),
        { text: state, style: stateStyle(message.state) },
        relativeTime(message.created_at, now),
        message.body.split("\n").join(" ⏎ "),
      ];
    }),
    look,
    { cutLast: true },
  );
}
