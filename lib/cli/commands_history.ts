/** Commands about the history as a whole: export, replay, purge. */
import { STATES } from "../model/message.ts";
import { PURGEABLE } from "../model/purge.ts";
import { command } from "./command.ts";
import { late } from "./late.ts";
import { flag, json, repo, text } from "./parameters.ts";
import type { ExportFlags } from "./verbs/export.ts";
import type { PurgeFlags } from "./verbs/purge.ts";
import type { ReplayFlags } from "./verbs/replay.ts";

export const exportCommand = command<ExportFlags, [string?]>({
  brief: "Write messages with everything known about them to a file, one JSON object a line",
  details:
    `Writes messages, oldest first, one JSON object a line, to FILE or to standard output. A file is
made with mode 0600; to one that exists the lines are appended. Reads the local database directly
and works with the service stopped. The fields are described in docs/history.md; tamq replay reads
them.

TIME is as in tamq history.`,
  usage: [
    "[FILE] [--repo REPO] [--state STATE] [--endpoint ID] [--correlation ID]\n" +
    "              [--since TIME] [--until TIME]",
  ],
  examples: [
    { run: "tamq export messages.jsonl", does: "the whole history" },
    { run: "tamq export --repo alpha --since 7d | jq -r .body", does: "to another program" },
  ],
  parameters: {
    flags: {
      repo: repo("Messages from or to this repository"),
      state: { kind: "enum", values: STATES, optional: true, brief: "Messages in this state" },
      endpoint: text("ID", "Messages bound to this endpoint"),
      correlation: text("ID", "Messages with this correlation id"),
      since: text("TIME", "Admitted at or after"),
      until: text("TIME", "Admitted before"),
    },
    positional: {
      kind: "tuple",
      parameters: [{
        parse: String,
        optional: true,
        placeholder: "FILE",
        brief: "Where to; standard output without it, and with -",
      }],
    },
  },
  load: () => late("cli/verbs/export"),
});

export const replay = command<ReplayFlags, [string]>({
  brief: "Send the messages of an exported file again, to one endpoint",
  details:
    `Sends each line of FILE as a new message to the windows of one endpoint. Sender, target, text
and metadata are those of the line; id, times and state are new, and the record keeps the id it had
and the batch. Each message passes the same checks as any other. A file may be replayed again: what
was sent from it before is recognised and not sent twice.

A line that cannot be sent is reported with its number, the others are sent, and the exit status is
1; with --strict the first such line ends the replay.`,
  usage: ["FILE|- --endpoint ID [--strict] [--dry-run] [--json]"],
  examples: [
    { run: "tamq replay messages.jsonl --endpoint tmux-amq-4711", does: "see tamq endpoints" },
    {
      run: "tamq export --repo alpha | tamq replay - --endpoint tmux-amq-4711 --dry-run",
      does: "checks every line, sends nothing",
    },
  ],
  parameters: {
    flags: {
      endpoint: text("ID", "Where to deliver (see tamq endpoints)"),
      strict: flag("Stop at the first line that cannot be sent"),
      dryRun: flag("Check every line, send nothing"),
      json,
    },
    positional: {
      kind: "tuple",
      parameters: [{ parse: String, placeholder: "FILE", brief: "The file, - for standard input" }],
    },
  },
  load: () => late("cli/verbs/replay"),
});

export const purge = command<PurgeFlags, []>({
  brief: "Remove old messages, after showing how many; never those still on their way",
  details:
    `Shows how many messages would go, from when they are and about how many bytes they take. On a
terminal it then asks; elsewhere nothing is removed without --yes.

Each filter chooses messages, and what any of them chooses is purged. Without a filter that is
--before 365d --max-size 100MB. Messages that are pending or await an acknowledgement are never
purged. What was sent stays known by its key: sending it again still sends nothing new. With --export,
what changed in the last five seconds is left for the next purge.

TIME is as in tamq history: an age such as 90d or 12h, or RFC 3339. SIZE is 100MB, 2GB, 500KB.`,
  usage: [
    "[--before TIME] [--max-size SIZE] [--repo REPO] [--state STATE]\n" +
    "             [--export FILE] [--yes | --dry-run] [--json]",
  ],
  examples: [
    { run: "tamq purge", does: "older than a year, and the oldest over 100 MB" },
    { run: "tamq purge --before 90d --export old.jsonl --yes", does: "keeps them in a file" },
    { run: "tamq purge --state failed --dry-run", does: "only counts" },
  ],
  parameters: {
    flags: {
      before: text("TIME", "Admitted before"),
      maxSize: text("SIZE", "The oldest, until the history has this size"),
      repo: repo("From or to this repository"),
      state: { kind: "enum", values: PURGEABLE, optional: true, brief: "In this final state" },
      export: text("FILE", "Append what goes to FILE first"),
      yes: flag("Purge without asking"),
      dryRun: flag("Only count, also on a terminal"),
      json,
    },
    aliases: { y: "yes" },
  },
  load: () => late("cli/verbs/purge"),
});
