/**
 * THE command table: name, brief, options, arguments, examples. Parsing, help and completion derive
 * from it; each implementation is imported when its command runs, not before.
 */
import type { AnyCommand } from "./command.ts";
import * as history from "./commands_history.ts";
import * as explain from "./commands_help.ts";
import * as messages from "./commands_messages.ts";
import * as service from "./commands_service.ts";
import * as windows from "./commands_windows.ts";

/** The groups of the overview, in its order. */
export const GROUPS: readonly (readonly [string, readonly string[]])[] = [
  ["Windows", ["start", "who", "endpoints"]],
  ["Messages", ["send", "history", "message", "ack", "retry", "cancel"]],
  ["History", ["export", "replay", "purge"]],
  ["Service", ["serve", "stop", "ping", "status", "db-version"]],
  ["Help", ["guide", "help", "completion"]],
];

/** Commands that are for tamq itself to call. */
export const HIDDEN: readonly string[] = ["broker"];

/** Every command by the name it is called. */
export const COMMANDS: Readonly<Record<string, AnyCommand>> = Object.assign(
  Object.create(null), // `tamq constructor` is no command
  {
    start: windows.start,
    broker: windows.broker,
    who: windows.who,
    endpoints: windows.endpoints,
    send: messages.send,
    history: messages.history,
    message: messages.message,
    ack: messages.ack,
    retry: messages.retry,
    cancel: messages.cancel,
    export: history.exportCommand,
    replay: history.replay,
    purge: history.purge,
    serve: service.serve,
    stop: service.stop,
    ping: service.ping,
    status: service.status,
    "db-version": service.dbVersion,
    guide: explain.guide,
    help: explain.help,
    completion: explain.completion,
  },
);
