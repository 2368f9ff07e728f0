/**
 * THE command table: name, brief, options, arguments, examples. Parsing, help and completion derive
 * from it; each implementation is imported when its command runs, not before.
 */
import { type AnyCommand, type Family, isFamily } from "./command.ts";
import { compose } from "./commands_compose.ts";
import { config } from "./commands_config.ts";
import * as control from "./commands_control.ts";
import { coord } from "./commands_coord.ts";
import { fleet } from "./commands_fleet.ts";
import * as history from "./commands_history.ts";
import * as explain from "./commands_help.ts";
import { hub } from "./commands_hub.ts";
import * as look from "./commands_look.ts";
import * as messages from "./commands_messages.ts";
import { profile } from "./commands_profile.ts";
import { record } from "./commands_record.ts";
import * as service from "./commands_service.ts";
import { service as unit } from "./commands_unit.ts";
import { upgrade } from "./commands_upgrade.ts";
import * as windows from "./commands_windows.ts";

/** The groups of the overview, in its order. */
export const GROUPS: readonly (readonly [string, readonly string[]])[] = [
  ["Windows", ["start", "who", "endpoints", "upgrade", "profile", "record"]],
  ["Messages", [
    "send",
    "compose",
    "inbox",
    "history",
    "message",
    "show",
    "ack",
    "retry",
    "cancel",
  ]],
  ["Control", ["allow", "unblock", "pause", "resume", "release"]],
  ["History", ["export", "replay", "purge"]],
  ["Service", [
    "serve",
    "stop",
    "ping",
    "status",
    "logs",
    "watch",
    "top",
    "doctor",
    "config",
    "db-version",
    "service",
  ]],
  ["Coordination", ["coord", "hub", "fleet"]],
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
    upgrade,
    send: messages.send,
    compose,
    inbox: messages.inbox,
    history: messages.history,
    message: messages.message,
    show: messages.show,
    ack: messages.ack,
    retry: messages.retry,
    cancel: messages.cancel,
    allow: control.allow,
    unblock: control.unblock,
    pause: control.pause,
    resume: control.resume,
    release: control.release,
    export: history.exportCommand,
    replay: history.replay,
    purge: history.purge,
    serve: service.serve,
    stop: service.stop,
    ping: service.ping,
    status: service.status,
    logs: service.logs,
    watch: look.watch,
    top: look.top,
    doctor: service.doctor,
    "db-version": service.dbVersion,
    guide: explain.guide,
    help: explain.help,
    completion: explain.completion,
  },
);

/** Commands of several words, by the first of them. */
export const FAMILIES: Readonly<Record<string, Family>> = Object.assign(Object.create(null), {
  config,
  coord,
  fleet,
  hub,
  profile,
  record,
  service: unit,
});

/** The command or family that a line names, how many of its words are the name. */
export function findCommand(
  words: readonly string[],
): { readonly entry: AnyCommand | Family; readonly depth: number } | undefined {
  let entry: AnyCommand | Family | undefined = COMMANDS[words[0]!] ?? FAMILIES[words[0]!];
  let depth = 1;
  while (entry !== undefined && isFamily(entry)) {
    const next: AnyCommand | Family | undefined = entry.commands[words[depth] ?? ""];
    if (next === undefined) break;
    entry = next;
    depth++;
  }
  return entry && { entry, depth };
}
