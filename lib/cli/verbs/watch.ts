/** `tamq watch`: what happens in the service, as it happens. */
import { displaySafe } from "../../base/display.ts";
import { loadSettings } from "../../config.ts";
import { RESERVED_SENDERS, senderLabel } from "../../model/envelope.ts";
import type { WatchEvent } from "../../protocol/events.ts";
import { onStopSignals } from "../../socket.ts";
import { reasonWords } from "../attempt_words.ts";
import { type ColorFlag, type Paint, paintFor, type Style } from "../colour.ts";
import type { Verb } from "../command.ts";
import type { CliContext } from "../context.ts";
import { late } from "../late.ts";
import { type ConnectionEvent, serviceEvents } from "../service_events.ts";
import { quoteWord } from "../words.ts";

export interface WatchFlags extends ColorFlag {
  readonly cursor?: string;
  readonly json?: boolean;
}

const watch: Verb<WatchFlags, string[]> = async function (flags, ...repos) {
  const settings = await loadSettings(this.env);
  await requireKnown(this, repos);
  const paint = paintFor(this, flags.color);
  const end = new AbortController();
  const restore = onStopSignals(() => end.abort(), () => {});
  try {
    const events = serviceEvents({
      settings,
      clock: this.clock,
      signal: end.signal,
      cursor: flags.cursor,
      repos: repos.length === 0 ? undefined : repos,
    });
    for await (const event of events) {
      if (flags.json) this.out(JSON.stringify(event));
      else if (event.type === "connection") this.err(connectionWords(event));
      else this.out(eventLine(event, paint));
      await this.flush(end.signal);
    }
  } finally {
    restore();
  }
};
export default watch;

/** A misspelt name would be waited for in vain. */
async function requireKnown(context: CliContext, repos: readonly string[]): Promise<void> {
  const asked = repos.filter((name) => !RESERVED_SENDERS.includes(name));
  if (asked.length === 0) return;
  const [{ gitaRegistry }, { requireRepositories }] = await Promise.all([
    late("gita"),
    late("cli/targets"),
  ]);
  requireRepositories(gitaRegistry(context.env), asked);
}

const CONNECTION_WORDS: Readonly<Record<ConnectionEvent["change"], string>> = {
  connected: "watching; Ctrl-C ends it",
  lost: "the service has ended; waiting for the next one (tamq serve --detach)",
  resumed: "the service is back",
};

function connectionWords({ change }: ConnectionEvent): string {
  return `tamq: ${CONNECTION_WORDS[change]}`;
}

const STYLES: Readonly<Record<string, Style>> = {
  delivered: "green",
  acknowledged: "green",
  failed: "red",
  blocked: "red",
  waiting: "yellow",
  overflow: "yellow",
  restarted: "yellow",
};

/** One line for people; every text of another program made safe. */
export function eventLine(event: WatchEvent, paint: Paint): string {
  const { what, change, rest } = eventParts(event);
  const parts = [
    paint("dim", clockTime(event.time)),
    paint("bold", event.type.padEnd(7)),
    displaySafe(what),
    paint(STYLES[event.change], change),
    displaySafe(rest),
  ];
  return parts.filter((part) => part !== "").join("  ");
}

function eventParts(event: WatchEvent): { what: string; change: string; rest: string } {
  const { change } = event;
  switch (event.type) {
    case "message": {
      const from = senderLabel(event.sender_repo, event.provenance);
      const why = event.reason === null ? "" : `: ${reasonWords(event.reason)}`;
      const again = event.next_attempt_at === null
        ? ""
        : `, again at ${clockTime(event.next_attempt_at)}`;
      const attempt = event.attempt > 1 ? ` (attempt ${event.attempt})` : "";
      return {
        what: `${from} → ${event.target_repo}`,
        change: change + attempt,
        rest: `${event.message_id}${why}${again}`,
      };
    }
    case "window":
      return { what: event.repo, change, rest: event.endpoint_id };
    case "gate":
      return {
        what: event.repo,
        change,
        rest: event.reason === null ? "" : reasonWords(event.reason),
      };
    case "control": {
      const { sender_repo, target_repo } = event;
      return {
        what: [sender_repo, target_repo].filter((name) => name !== null).join(" → "),
        change,
        rest: "",
      };
    }
    case "storm": {
      const pair = [event.sender_repo, event.target_repo];
      return {
        what: pair.join(" → "),
        change,
        rest: `wrote too much; to lift it: tamq unblock ${pair.map(quoteWord).join(" ")}`,
      };
    }
    case "purge":
      return { what: "", change, rest: "" };
    case "service":
      return { what: "", change, rest: "" };
    case "gap":
      return { what: "", change, rest: gapWords(event) };
    default: {
      // Of a newer service.
      const { type: _, change, ...rest } = event as { type: string; change?: string };
      return { what: "", change: displaySafe(change ?? ""), rest: JSON.stringify(rest) };
    }
  }
}

function gapWords({ missed, change }: Extract<WatchEvent, { type: "gap" }>): string {
  const events = missed === 1 ? "1 event is" : `${missed} events are`;
  const text = missed !== null
    ? `${events} not shown`
    : "the service before this one ended without a word: events may be missing";
  const why = change === "overflow" ? ", they came faster than they were read" : "";
  return `${text}${why}; what became of messages: tamq history`;
}

/** Local time of the day: a stream is read as it comes. */
function clockTime(rfc3339: string): string {
  const date = new Date(rfc3339);
  if (Number.isNaN(date.getTime())) return displaySafe(rfc3339);
  const two = (n: number) => String(n).padStart(2, "0");
  return [date.getHours(), date.getMinutes(), date.getSeconds()].map(two).join(":");
}
