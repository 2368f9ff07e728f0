/** Commands about the State Hub: the embedded one's process, and records of whichever is in use. */
import { BLOCKED_REASONS } from "../model/checkpoint.ts";
import { command, family } from "./command.ts";
import { late } from "./late.ts";
import { count, flag, json, repo, text } from "./parameters.ts";
import { statePurge } from "./commands_state_purge.ts";
import { message, plan } from "./commands_hub_plans.ts";
import type * as verbs from "./verbs/hub_records.ts";
import type { HubServeFlags } from "./verbs/hub_service.ts";
import type { JsonFlag } from "./verbs/service.ts";

const id = (placeholder: string, brief: string) => ({
  kind: "tuple",
  parameters: [{ parse: String, placeholder, brief }],
} as const);
const taskId = id("TASK", "Id of a task, as `tamq hub task list` prints it");
const title = id("TITLE", "One line");

const records = () => late("cli/verbs/hub_records");
const service = () => late("cli/verbs/hub_service");

const STATUSES = ["draft", "ready", "active", "blocked", "done", "cancelled"] as const;

function number(input: string): number {
  return count(0, 65_535)(input === "" ? "8000" : input);
}

const serve = command<HubServeFlags, []>({
  brief: "Run the embedded State Hub in the foreground, or in the background with --detach",
  details:
    `Runs a State Hub on this machine: tasks, workplans and messages in a database of its own, answered
over a Unix socket that only you can open. With --tcp it listens on 127.0.0.1 as well, for other
programs; they need the token that lies in the state directory.

--orwell writes requests and answers in clear to hub/orwell.log: see tamq serve --help.`,
  usage: ["[--detach] [--tcp [PORT]] [--quiet|--verbose] [--json] [--orwell]"],
  examples: [
    { run: "tamq hub serve --detach", does: "in the background, log in the state directory" },
    { run: "tamq hub serve --tcp", does: "on 127.0.0.1:8000 as well" },
  ],
  parameters: {
    flags: {
      detach: flag("Run in the background; return once it answers"),
      tcp: {
        kind: "parsed",
        parse: number,
        inferEmpty: true,
        optional: true,
        placeholder: "PORT",
        brief: "Listen on 127.0.0.1 too; 8000 unless PORT is given",
      },
      quiet: flag("Log warnings and errors only"),
      verbose: flag("Log everything"),
      json: flag("Log JSON, one object a line"),
      orwell: flag("UNSAFE: write bodies and credentials down in clear, for diagnosis"),
      detachedChild: flag("What --detach starts", true),
    },
  },
  load: async () => ({ default: (await service()).serve }),
});

const stop = command<JsonFlag, []>({
  brief: "Stop the embedded State Hub; its records stay",
  usage: ["[--json]"],
  examples: [{ run: "tamq hub stop", does: "ends it within its grace period" }],
  parameters: { flags: { json } },
  load: async () => ({ default: (await service()).stop }),
});

const status = command<JsonFlag, []>({
  brief: "Ask the State Hub in use for a sign of life",
  usage: ["[--json]"],
  examples: [{ run: "tamq hub status", does: "status 0 when it answers, else 3" }],
  parameters: { flags: { json } },
  load: async () => ({ default: (await service()).status }),
});

const taskFlags = {
  plan: text("PLAN", "Workplan that it belongs to"),
  agent: text("AGENT", "Agent that is to do it"),
  depends: text("IDS", "Tasks that must be done first, with commas between"),
  action: text("CLASSES", "Classes of action that it needs, with commas between"),
  label: text("LABELS", "Labels, with commas between"),
  description: text("TEXT", "What is to be done"),
  priority: {
    kind: "parsed",
    parse: count(0, 9),
    optional: true,
    placeholder: "N",
    brief: "0 (first) to 9; 5 unless given",
  },
} as const;

/** A verb that moves one task and takes nothing but its id. */
function taskMove(name: keyof verbs.TaskMoves, brief: string, does: string) {
  return command<JsonFlag, [string]>({
    brief,
    usage: ["[--json] TASK"],
    examples: [{ run: `tamq hub task ${name} build-api`, does }],
    parameters: { flags: { json }, positional: taskId },
    load: async () => ({ default: (await records()).taskMoves[name] }),
  });
}

const task = family("Tasks of the State Hub", {
  add: command<verbs.TaskAddFlags, [string]>({
    brief: "Add a task, a draft unless --ready",
    usage: [
      "TITLE --repo REPO [--ready] [--depends IDS] [--plan PLAN] [--id ID]\n" +
      "                    [--action CLASSES] [--needs-human] [--description TEXT] [--json]",
    ],
    examples: [
      { run: "tamq hub task add 'Build the API' --repo alpha --id api --ready", does: "now" },
      {
        run: "tamq hub task add 'Use the API' --repo beta --depends api --ready",
        does: "once it is done",
      },
    ],
    parameters: {
      flags: {
        repo: { ...repo("Repository whose worker is to do it"), optional: false },
        id: text("ID", "Id; one is made up unless given"),
        ready: flag("A worker may take it up as soon as what it depends on is done"),
        needsHuman: flag("Nobody is woken for it until a person says so"),
        ...taskFlags,
        json,
      },
      positional: title,
    },
    load: async () => ({ default: (await records()).taskAdd }),
  }),
  list: command<verbs.TaskListFlags, []>({
    brief: "List tasks and what they wait for",
    usage: [
      "[--repo REPO] [--status STATUS] [--plan PLAN] [--label LABEL] [--agent AGENT]\n" +
      "                    [--actionable] [--json]",
    ],
    examples: [
      { run: "tamq hub task list", does: "all of them" },
      { run: "tamq hub task list --repo alpha --actionable", does: "what alpha could take up now" },
    ],
    parameters: {
      flags: {
        repo: repo("Tasks of this repository"),
        status: { kind: "enum", values: STATUSES, optional: true, brief: "Tasks in this status" },
        plan: text("PLAN", "Tasks of this workplan"),
        label: text("LABEL", "Tasks with this label"),
        agent: text("AGENT", "Tasks for this agent"),
        actionable: flag("Only those that a worker may take up now"),
        json,
      },
    },
    load: async () => ({ default: (await records()).taskList }),
  }),
  show: command<JsonFlag, [string]>({
    brief: "Show a task with its notes",
    usage: ["[--json] TASK"],
    examples: [{ run: "tamq hub task show api", does: "everything known about it" }],
    parameters: { flags: { json }, positional: taskId },
    load: async () => ({ default: (await records()).taskShow }),
  }),
  edit: command<verbs.TaskEditFlags, [string]>({
    brief: "Change fields of a task",
    usage: [
      "TASK [--title TEXT] [--repo REPO] [--depends IDS] [--needs-human|--no-needs-human] ...",
    ],
    examples: [
      { run: "tamq hub task edit api --priority 1", does: "more urgent" },
      { run: "tamq hub task edit api --no-needs-human", does: "a person has looked at it" },
    ],
    parameters: {
      flags: {
        title: text("TEXT", "Its title"),
        repo: repo("Repository whose worker is to do it"),
        needsHuman: { kind: "boolean", optional: true, brief: "Whether a person is asked for" },
        ...taskFlags,
        json,
      },
      positional: taskId,
    },
    load: async () => ({ default: (await records()).taskEdit }),
  }),
  draft: taskMove("draft", "Take a task back to a draft", "nobody is woken for it"),
  ready: taskMove(
    "ready",
    "Let a worker take a task up",
    "its worker is woken when nothing holds it",
  ),
  start: taskMove("start", "Say that a task is being worked on", "wakes nobody"),
  done: taskMove("done", "Say that a task is done", "tasks that depend on it become actionable"),
  cancel: taskMove("cancel", "Give a task up", "tasks that depend on it go on waiting"),
  block: command<verbs.TaskBlockFlags, [string]>({
    brief: "Say what keeps a task from going on",
    usage: [`TASK --kind ${BLOCKED_REASONS.join("|")} [--note TEXT] [--json]`],
    examples: [
      { run: "tamq hub task block api --kind human --note 'which database?'", does: "asks" },
    ],
    parameters: {
      flags: {
        kind: { kind: "enum", values: BLOCKED_REASONS, brief: "What is missing" },
        note: text("TEXT", "The question, or what is missing"),
        json,
      },
      positional: taskId,
    },
    load: async () => ({ default: (await records()).taskBlock }),
  }),
  note: command<verbs.NoteFlags, [string, string]>({
    brief: "Add a note to a task; with --review work stops until it is resolved",
    usage: ["TASK TEXT [--review] [--author NAME] [--json]"],
    examples: [{
      run: "tamq hub task note api 'show me the schema first' --review",
      does: "stops",
    }],
    parameters: {
      flags: {
        review: flag("Work on it stops until the note is resolved"),
        author: text(
          "NAME",
          "Whose note it is; `operator` unless given, in a window its repository",
        ),
        json,
      },
      positional: {
        kind: "tuple",
        parameters: [taskId.parameters[0], {
          parse: String,
          placeholder: "TEXT",
          brief: "The note",
        }],
      },
    },
    load: async () => ({ default: (await records()).taskNote }),
  }),
  resolve: command<JsonFlag, [string, string]>({
    brief: "Mark a note of a task as dealt with",
    usage: ["[--json] TASK NOTE"],
    examples: [{ run: "tamq hub task resolve api 06zz…", does: "work may go on" }],
    parameters: {
      flags: { json },
      positional: {
        kind: "tuple",
        parameters: [taskId.parameters[0], {
          parse: String,
          placeholder: "NOTE",
          brief: "Id of the note, as `tamq hub task show` prints it",
        }],
      },
    },
    load: async () => ({ default: (await records()).taskResolve }),
  }),
});

const purge = statePurge(
  "hub",
  "Remove old receipts, checkpoints and acknowledged messages, while the State Hub is stopped",
);

export const hub = family("The State Hub: tasks, workplans and messages", {
  serve,
  stop,
  status,
  purge,
  task,
  plan,
  message,
});
