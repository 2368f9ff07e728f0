/** Commands about workplans and messages of the State Hub. */
import { command, family } from "./command.ts";
import { late } from "./late.ts";
import { flag, json, repo, text } from "./parameters.ts";
import type * as verbs from "./verbs/hub_records.ts";
import type { JsonFlag } from "./verbs/service.ts";

const records = () => late("cli/verbs/hub_records");

const one = (placeholder: string, brief: string) => ({ parse: String, placeholder, brief });
const planId = one("PLAN", "Id of a workplan, as `tamq hub plan list` prints it");
const messageId = one("MESSAGE", "Id of a message, as `tamq hub message list` prints it");
const tuple = <T extends readonly unknown[]>(...parameters: T) => (
  { kind: "tuple", parameters } as const
);

function planMove(name: keyof verbs.PlanMoves, brief: string, does: string) {
  return command<JsonFlag, [string]>({
    brief,
    usage: ["[--json] PLAN"],
    examples: [{ run: `tamq hub plan ${name} release-2`, does }],
    parameters: { flags: { json }, positional: tuple(planId) },
    load: async () => ({ default: (await records()).planMoves[name] }),
  });
}

const planFlags = {
  repo: repo("Repository whose worker takes it up"),
  agent: text("AGENT", "Agent that is to take it up"),
  action: text("CLASSES", "Classes of action that it needs, with commas between"),
  label: text("LABELS", "Labels, with commas between"),
  description: text("TEXT", "What it is about"),
} as const;
const PLAN_STATUSES = ["draft", "ready", "active", "paused", "done", "cancelled"] as const;

export const plan = family("Workplans of the State Hub", {
  add: command<verbs.PlanAddFlags, [string]>({
    brief: "Add a workplan, a draft unless --ready or --active",
    usage: [
      "TITLE [--repo REPO] [--id ID] [--ready|--active] [--needs-human]\n" +
      "                    [--action CLASSES] [--description TEXT] [--json]",
    ],
    examples: [{ run: "tamq hub plan add 'Release 2' --id release-2 --active", does: "begun" }],
    parameters: {
      flags: {
        id: text("ID", "Id; one is made up unless given"),
        ready: flag("Its repository's worker may take it up"),
        active: flag("Its tasks may be worked on"),
        needsHuman: flag("Nobody is woken for its tasks until a person says so"),
        ...planFlags,
        json,
      },
      positional: tuple(one("TITLE", "One line")),
    },
    load: async () => ({ default: (await records()).planAdd }),
  }),
  list: command<verbs.PlanListFlags, []>({
    brief: "List workplans",
    usage: ["[--repo REPO] [--status STATUS] [--json]"],
    examples: [{ run: "tamq hub plan list", does: "all of them" }],
    parameters: {
      flags: {
        repo: repo("Workplans of this repository"),
        status: {
          kind: "enum",
          values: PLAN_STATUSES,
          optional: true,
          brief: "Workplans in this status",
        },
        json,
      },
    },
    load: async () => ({ default: (await records()).planList }),
  }),
  show: command<JsonFlag, [string]>({
    brief: "Show a workplan with its notes and tasks",
    usage: ["[--json] PLAN"],
    examples: [{ run: "tamq hub plan show release-2", does: "the plan, then its tasks" }],
    parameters: { flags: { json }, positional: tuple(planId) },
    load: async () => ({ default: (await records()).planShow }),
  }),
  edit: command<verbs.PlanEditFlags, [string]>({
    brief: "Change fields of a workplan",
    usage: [
      "PLAN [--title TEXT] [--repo REPO] [--action CLASSES] [--needs-human|--no-needs-human] ...",
    ],
    examples: [
      { run: "tamq hub plan edit release-2 --no-needs-human", does: "a person has looked at it" },
    ],
    parameters: {
      flags: {
        title: text("TEXT", "Its title"),
        needsHuman: { kind: "boolean", optional: true, brief: "Whether a person is asked for" },
        ...planFlags,
        json,
      },
      positional: tuple(planId),
    },
    load: async () => ({ default: (await records()).planEdit }),
  }),
  draft: planMove("draft", "Take a workplan back to a draft", "nobody is woken for its tasks"),
  ready: planMove("ready", "Let a worker take a workplan up", "its repository's worker is woken"),
  start: planMove("start", "Let the tasks of a workplan be worked on", "its ready tasks count"),
  pause: planMove("pause", "Hold the tasks of a workplan", "nobody is woken for them"),
  done: planMove("done", "Say that a workplan is done", "nobody is woken for its tasks"),
  cancel: planMove("cancel", "Give a workplan up", "nobody is woken for its tasks"),
  note: command<verbs.NoteFlags, [string, string]>({
    brief: "Add a note to a workplan; with --review work on its tasks stops until it is resolved",
    usage: ["PLAN TEXT [--review] [--author NAME] [--json]"],
    examples: [{
      run: "tamq hub plan note release-2 'wait for the audit' --review",
      does: "holds its tasks",
    }],
    parameters: {
      flags: {
        review: flag("Work on its tasks stops until the note is resolved"),
        author: text(
          "NAME",
          "Whose note it is; `operator` unless given, in a window its repository",
        ),
        json,
      },
      positional: tuple(planId, one("TEXT", "The note")),
    },
    load: async () => ({ default: (await records()).planNote }),
  }),
  resolve: command<JsonFlag, [string, string]>({
    brief: "Mark a note of a workplan as dealt with",
    usage: ["[--json] PLAN NOTE"],
    examples: [{ run: "tamq hub plan resolve release-2 06zz…", does: "work may go on" }],
    parameters: {
      flags: { json },
      positional: tuple(planId, one("NOTE", "Id of the note, as `tamq hub plan show` prints it")),
    },
    load: async () => ({ default: (await records()).planResolve }),
  }),
});

export const message = family("Messages of the State Hub", {
  add: command<verbs.MessageAddFlags, [string]>({
    brief: "Leave a message for a repository; with --ask its worker is woken",
    usage: [
      "SUBJECT --to REPO [--body TEXT] [--ask] [--needs-human] [--action CLASSES]\n" +
      "                    [--agent AGENT] [--task TASK] [--from NAME] [--json]",
    ],
    examples: [
      { run: "tamq hub message add 'API changed' --to beta --body 'see v2' --ask", does: "asks" },
      {
        run: "tamq hub message add 'Drop the old table' --to beta --ask --action destructive",
        does: "a person must approve first",
      },
    ],
    parameters: {
      flags: {
        to: { ...repo("Repository that it is for"), optional: false },
        body: text("TEXT", "The text; standard input with -"),
        ask: flag("Action is asked for"),
        needsHuman: flag("Nobody is woken for it until a person approves"),
        action: text("CLASSES", "Classes of action that it needs, with commas between"),
        agent: text("AGENT", "Agent that it is for"),
        from: text(
          "NAME",
          "Whose message it is; `operator` unless given, in a window its repository",
        ),
        task: text("TASK", "Task that it is about"),
        json,
      },
      positional: tuple(one("SUBJECT", "One line")),
    },
    load: async () => ({ default: (await records()).messageAdd }),
  }),
  list: command<verbs.MessageListFlags, []>({
    brief: "List messages",
    usage: ["[--repo REPO] [--state unread|read|acknowledged] [--ask] [--json]"],
    examples: [{ run: "tamq hub message list --repo alpha --state unread", does: "its inbox" }],
    parameters: {
      flags: {
        repo: repo("Messages for this repository"),
        state: {
          kind: "enum",
          values: ["unread", "read", "acknowledged"],
          optional: true,
          brief: "Messages in this state",
        },
        ask: flag("Only those that ask for action"),
        json,
      },
    },
    load: async () => ({ default: (await records()).messageList }),
  }),
  show: command<verbs.MessageShowFlags, [string]>({
    brief: "Show a message",
    usage: ["[--read] [--json] MESSAGE"],
    examples: [{ run: "tamq hub message show 06zz… --read", does: "and marks it as read" }],
    parameters: { flags: { read: flag("Mark it as read"), json }, positional: tuple(messageId) },
    load: async () => ({ default: (await records()).messageShow }),
  }),
  ack: command<JsonFlag, [string]>({
    brief: "Acknowledge a message",
    usage: ["[--json] MESSAGE"],
    examples: [{ run: "tamq hub message ack 06zz…", does: "it is dealt with" }],
    parameters: { flags: { json }, positional: tuple(messageId) },
    load: async () => ({ default: (await records()).messageAck }),
  }),
});
