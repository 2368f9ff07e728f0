/** Commands that show what goes on while it goes on. */
import { command } from "./command.ts";
import { late } from "./late.ts";
import { color, flag, json, repoArgument, text } from "./parameters.ts";
import type { TopFlags } from "./verbs/top.ts";
import type { WatchFlags } from "./verbs/watch.ts";

export const watch = command<WatchFlags, string[]>({
  brief: "Show what happens as it happens: messages, windows, gates, controls",
  details:
    `Prints a line for every change of a message's state, every window that comes or goes, every gate
that opens or closes, and what you or the storm guard hold back or let go; with REPO only what
concerns one of these. The service pushes, nothing is polled. Ctrl-C ends it with status 0.

When the service ends, the command says so, waits for the next one and goes on where it was: after
an orderly stop nothing is missing and nothing comes twice. After a crash, or when its output was
read too slowly, a gap is told of, with the number of missed events where it is known.

With --json every line is an object with type, change, time and cursor; docs/json.md describes them.
--cursor goes on behind the event of that cursor. Texts of messages are never shown: see tamq
history.`,
  usage: ["[--cursor CURSOR] [--color WHEN] [--json] [REPO...]"],
  examples: [
    { run: "tamq watch", does: "shows everything, until Ctrl-C" },
    { run: "tamq watch alpha", does: "what concerns alpha" },
    { run: "tamq watch --json | jq -c .", does: "one object a line, for programs" },
  ],
  parameters: {
    flags: {
      cursor: text("CURSOR", "Go on behind the event that had this cursor"),
      color,
      json,
    },
    positional: { kind: "array", parameter: repoArgument },
  },
  load: () => late("cli/verbs/watch"),
});

export const top = command<TopFlags, []>({
  brief: "Show windows, queue, retries, failures and messages on the whole screen, live",
  details:
    `Shows which windows are ready or busy, how many messages wait for each, what is being written or
to be tried again and when, what failed, and the last messages. Fills the terminal at any size;
what does not fit is on screens of its own.

  q quits      1 all          2 windows    3 due
  ? help       4 failures     5 messages   t texts

Texts of messages are shown only after t or with --texts. While the service is away the last state
stays, and the view goes on when it is back. Nothing is polled: the service is asked when something
has happened.`,
  usage: ["[--texts] [--color WHEN]"],
  examples: [
    { run: "tamq top", does: "until q" },
    { run: "tamq top --texts", does: "with the beginning of each message's text" },
  ],
  parameters: {
    flags: {
      texts: flag("Show the beginning of each message's text"),
      color,
    },
  },
  load: () => late("cli/verbs/top"),
});
