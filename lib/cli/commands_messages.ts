/** Commands about messages. */
import { STATES } from "../model/message.ts";
import { command } from "./command.ts";
import { late } from "./late.ts";
import { color, count, flag, json, messageId, repo, repoArgument, text } from "./parameters.ts";
import type { ShowFlags } from "./verbs/history.ts";
import type { InboxFlags } from "./verbs/inbox.ts";
import type { MessageFlags } from "./verbs/message.ts";
import type { SendFlags } from "./verbs/send.ts";
import type { JsonFlag } from "./verbs/service.ts";

const idArgument = { kind: "tuple", parameters: [messageId] } as const;

export const send = command<SendFlags, string[]>({
  brief: "Send a message to a repository",
  details:
    `Sends a message to the worker of a repository. The text is the arguments, joined by blanks, or the
file given by --file, or standard input. Without --to its first line begins with To:REPO: and a
blank. One trailing line feed of a file or of standard input is dropped. Prints the message id. The
message is queued durably when the command returns.

Without any of these, at a terminal, or with --edit, an editor opens: $VISUAL, else $EDITOR, else vi.
It is run without a shell; the variable is split into words as for --command of tamq start. When the
text is empty, or the editor fails, nothing is sent and the exit status is 1; a text that could not be
sent is kept in the state directory, and its path is told.

Quote the text: the shell would take $, *, ; and the like for itself.`,
  usage: [
    "'To:REPO: TEXT' [--endpoint ID] [--key KEY] [--json]",
    "--to REPO [TEXT | --file FILE|-] [--endpoint ID] [--key KEY] [--json]",
    "[--file FILE|-] [--endpoint ID] [--key KEY] [--json]",
    "[--edit] [--to REPO] [TEXT]",
  ],
  examples: [
    { run: "tamq send 'To:alpha: please rebase'", does: "one line, or several in the quotes" },
    { run: "tamq send --to alpha --file review.md", does: "the text of a file" },
    { run: "git log -3 | tamq send --to alpha", does: "the text on standard input" },
    { run: "git log -3 | tamq send 'To:alpha:'", does: "the same" },
    { run: "tamq send", does: "opens your editor for address and text" },
    { run: "tamq send < message.txt", does: "a file that begins with To:alpha: and a blank" },
  ],
  parameters: {
    flags: {
      to: repo("Repository to send to; then the text needs no To: line"),
      file: text("FILE", "Read the text from FILE, or from standard input with -"),
      endpoint: text("ID", "Deliver at this endpoint only (see tamq endpoints)"),
      key: text("KEY", "Idempotency key: sending again with the same key sends nothing new"),
      correlation: text("ID", "Correlation id, kept with the message"),
      edit: flag("Write the text in an editor, beginning with what is given"),
      json,
    },
    aliases: { f: "file", e: "edit" },
    positional: {
      kind: "array",
      parameter: { parse: String, placeholder: "TEXT", brief: "The message" },
    },
  },
  load: () => late("cli/verbs/send"),
});

export const message = command<MessageFlags, [string]>({
  brief: "Show one message: state, deadlines, attempts, text",
  usage: ["[--json] ID"],
  examples: [{ run: "tamq message 06zz…", does: "everything known about it" }],
  parameters: { flags: { color, json }, positional: idArgument },
  load: () => late("cli/verbs/message"),
});

export const show = command<MessageFlags, [string]>({
  brief: "Show one message and explain what became of each attempt (the same as message)",
  usage: ["[--json] ID"],
  examples: [{ run: "tamq show 06zz…", does: "why it waits, what was seen of it" }],
  parameters: { flags: { color, json }, positional: idArgument },
  load: () => late("cli/verbs/message"),
});

export const history = command<ShowFlags, []>({
  brief: "Show messages and what became of them",
  details:
    `Shows messages, oldest first, so that the latest stand at the bottom as in a log; --reverse puts
the newest first. Without --limit the last 50 are shown, with --json all of them. Reads the local
database directly and works with the service stopped; why a message waits is known while it runs.
Of a long text the beginning is shown, with --full and with --json all of it.

TIME is RFC 3339 (2030-01-31T09:00:00Z), a local date or date and time (2030-01-31, "2030-01-31
09:00"), or an age: 90s, 15m, 2h, 3d, 1w.`,
  usage: [
    "[--repo REPO] [--state STATE] [--endpoint ID] [--correlation ID]\n" +
    "               [--since TIME] [--until TIME] [-n N] [--reverse] [--full] [--json]",
  ],
  examples: [
    { run: "tamq history", does: "the last 50 messages" },
    { run: "tamq history --repo alpha --since 2h", does: "from or to alpha, the last two hours" },
    { run: "tamq history --state failed --json", does: "all that failed, one object a line" },
  ],
  parameters: {
    flags: {
      repo: repo("Messages from or to this repository"),
      state: { kind: "enum", values: STATES, optional: true, brief: "Messages in this state" },
      endpoint: text("ID", "Messages bound to this endpoint"),
      correlation: text("ID", "Messages with this correlation id"),
      since: text("TIME", "Admitted at or after"),
      until: text("TIME", "Admitted before"),
      limit: {
        kind: "parsed",
        parse: count(1, 10_000),
        optional: true,
        placeholder: "N",
        brief: "At most N, the latest of them",
      },
      reverse: flag("Newest first"),
      full: flag("Whole texts, however long"),
      color,
      json,
    },
    aliases: { n: "limit" },
  },
  load: () => late("cli/verbs/history"),
});

export const inbox = command<InboxFlags, [string?]>({
  brief: "Show what waits for a repository and what came to it last",
  details:
    `Shows the messages that wait for REPO, oldest first, and why, then the latest ones that it was given
or that failed, newest first. In a window of tamq's REPO is that of the window unless given. Works
with the service stopped; why a message waits is known while it runs.`,
  usage: ["[-n N] [--full] [--json] [REPO]"],
  examples: [
    { run: "tamq inbox alpha", does: "what waits for alpha, and the last 10 that came" },
    { run: "tamq inbox --full", does: "in a window: this repository's, with their whole texts" },
  ],
  parameters: {
    flags: {
      limit: {
        kind: "parsed",
        parse: count(1, 1000),
        optional: true,
        placeholder: "N",
        brief: "At most N of those that came; 10 unless given",
      },
      full: flag("Whole texts instead of their beginnings"),
      color,
      json,
    },
    aliases: { n: "limit" },
    positional: { kind: "tuple", parameters: [{ ...repoArgument, optional: true }] },
  },
  load: () => late("cli/verbs/inbox"),
});

export const ack = command<JsonFlag, [string]>({
  brief: "Acknowledge a message",
  usage: ["[--json] ID"],
  examples: [{ run: "tamq ack 06zz…", does: "also late: an acknowledgement always wins" }],
  parameters: { flags: { json }, positional: idArgument },
  load: () => late("cli/verbs/ack"),
});

export const retry = command<JsonFlag, [string]>({
  brief: "Return a failed message to the queue",
  usage: ["[--json] ID"],
  examples: [{ run: "tamq retry 06zz…", does: "its attempts start over" }],
  parameters: { flags: { json }, positional: idArgument },
  load: () => late("cli/verbs/retry"),
});

export const cancel = command<JsonFlag, [string]>({
  brief: "Withdraw a message that is still waiting",
  usage: ["[--json] ID"],
  examples: [{ run: "tamq cancel 06zz…", does: "only before a delivery has begun" }],
  parameters: { flags: { json }, positional: idArgument },
  load: () => late("cli/verbs/cancel"),
});
