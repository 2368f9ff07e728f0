/** Commands about the message service itself. */
import type { ColorFlag } from "./colour.ts";
import { command } from "./command.ts";
import { late } from "./late.ts";
import {
  color,
  count,
  flag,
  json,
  LEVELS,
  LOG_SOURCES,
  type LogSource,
  text,
} from "./parameters.ts";
import type { LogsFlags } from "./verbs/logs.ts";
import type { JsonFlag } from "./verbs/service.ts";
import type { ServiceFlags } from "./serve_flags.ts";

export const serve = command<ServiceFlags, []>({
  brief: "Run the message service in the foreground, or in the background with --detach",
  details:
    `Runs the message service. In the foreground it logs to standard error, with --detach to tamq.log in
the state directory; tamq logs shows that.

--orwell is an unsafe mode for diagnosis: bodies and credentials are written in clear to orwell.log in
the state directory (0600), until the service ends. It has to be given each time, and only a policy
profile with allow_orwell = true admits it; the default one refuses. Delete the file afterwards.`,
  usage: ["[--detach] [--quiet|--verbose] [--json] [--orwell]"],
  examples: [
    { run: "tamq serve", does: "in the foreground, log on standard error; Ctrl-C stops it" },
    { run: "tamq serve --detach", does: "in the background, log in the state directory" },
  ],
  parameters: {
    flags: {
      detach: flag("Run in the background; return once it answers"),
      quiet: flag("Log warnings and errors only"),
      verbose: flag("Log everything"),
      json: flag("Log JSON, one object a line"),
      orwell: flag("UNSAFE: write bodies and credentials down in clear, for diagnosis"),
      detachedChild: flag("What --detach starts", true),
    },
  },
  load: () => late("cli/verbs/serve"),
});

export const stop = command<JsonFlag, []>({
  brief: "Stop the message service; terminals and queued messages stay",
  usage: ["[--json]"],
  examples: [{ run: "tamq stop", does: "ends the service within its grace period" }],
  parameters: { flags: { json } },
  load: () => late("cli/verbs/stop"),
});

export const status = command<JsonFlag & ColorFlag, []>({
  brief: "Show the health of service, database, registry, queue and windows",
  details:
    `Shows the health of each part separately. The exit status is 0 when the service runs and every
part is well, 1 when a part is not, 3 when the service does not answer.

  service    the process that answers, and how many windows are attached
  sqlite     the database of messages
  gita       the registry that names the repositories
  state hub  the coordination engine's business: messages do not need it ("-")
  queue      messages that wait, and those that failed; withdrawn ones count as failed
  leases     messages that a window is writing at this moment: each is lent to one window for a
             bounded time, so that none is written twice at once
  control    what you hold back or what was stopped for writing too much`,
  usage: ["[--json]"],
  examples: [
    { run: "tamq status", does: "for people" },
    { run: "tamq status --json", does: "one object, for programs" },
  ],
  parameters: { flags: { color, json } },
  load: () => late("cli/verbs/status"),
});

export const logs = command<LogsFlags, LogSource[]>({
  brief: "Show what service, windows, engine and hub have logged",
  details:
    `Shows the log files in the state directory together, in the order of time: those of the message
service and of the windows' brokers, of the coordination engine and of the State Hub, with the parts
that were moved aside when they were full. Without -n and --since the last 50 lines are shown, with
--json all. --follow goes on until Ctrl-C, which ends it with status 0.

Logs hold no message bodies, credentials or terminal output. A service that runs in the foreground
or under systemd logs to its terminal or to the journal instead (journalctl --user -u tamq).

SOURCE is ${LOG_SOURCES.join(", ")}; none means all. TIME is as for tamq history.`,
  usage: ["[-f] [--level LEVEL] [--since TIME] [-n N] [--json] [SOURCE...]"],
  examples: [
    { run: "tamq logs -f", does: "shows what comes, until Ctrl-C" },
    { run: "tamq logs --level warn --since 1d", does: "warnings and errors of the last day" },
    { run: "tamq logs window -n 20", does: "the last 20 lines of the windows" },
  ],
  parameters: {
    flags: {
      follow: flag("Go on and show what is written from now"),
      level: {
        kind: "enum",
        values: LEVELS,
        optional: true,
        brief: "This level and those above",
      },
      since: text("TIME", "Written at or after"),
      limit: {
        kind: "parsed",
        parse: count(1, 1_000_000),
        optional: true,
        placeholder: "N",
        brief: "At most N, the latest of them",
      },
      color,
      json,
    },
    aliases: { f: "follow", n: "limit" },
    positional: {
      kind: "array",
      parameter: {
        parse: (input): LogSource => {
          const source = LOG_SOURCES.find((name) => name === input);
          if (source === undefined) throw new Error(`one of ${LOG_SOURCES.join(", ")} is wanted`);
          return source;
        },
        placeholder: "SOURCE",
        brief: LOG_SOURCES.join(", "),
        proposeCompletions: (partial) => LOG_SOURCES.filter((name) => name.startsWith(partial)),
      },
    },
  },
  load: () => late("cli/verbs/logs"),
});

export const doctor = command<JsonFlag & ColorFlag, []>({
  brief: "Check the whole set-up and say how to mend what is wrong",
  details:
    `Looks at the configuration, tmux, gita and its registry, the state directory and what lies in it,
the socket, the service, the database and the shell. Changes nothing. The exit status is 1 when
something keeps messages from working; warnings and hints do not count.`,
  usage: ["[--json]"],
  examples: [
    { run: "tamq doctor", does: "when something does not work" },
    { run: "tamq doctor --json", does: "one object, for programs" },
  ],
  parameters: { flags: { color, json } },
  load: () => late("cli/verbs/doctor"),
});

export const ping = command<JsonFlag, []>({
  brief: "Ask the service for a sign of life; the exit status says it",
  usage: ["[--json]"],
  examples: [{ run: "tamq ping && echo alive", does: "status 0 when it answers, else 3" }],
  parameters: { flags: { json } },
  load: () => late("cli/verbs/ping"),
});

export const dbVersion = command<JsonFlag, []>({
  brief: "Print the schema version of the message database",
  usage: ["[--json]"],
  examples: [{ run: "tamq db-version", does: "works with the service stopped" }],
  parameters: { flags: { json } },
  load: () => late("cli/verbs/db_version"),
});
