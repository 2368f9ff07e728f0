/** Commands of the coordination engine: its process, what it knows, and what workers say to it. */
import { BLOCKED_REASONS } from "../model/checkpoint.ts";
import { command, family } from "./command.ts";
import { late } from "./late.ts";
import { count, flag, json, repo, text } from "./parameters.ts";
import type { ServiceFlags } from "./serve_flags.ts";
import { statePurge } from "./commands_state_purge.ts";
import type * as views from "./verbs/coord_views.ts";
import type { CheckpointFlags, ReleaseFlags } from "./verbs/coord_worker.ts";
import type { JsonFlag } from "./verbs/service.ts";

const service = () => late("cli/verbs/coord_service");
const show = () => late("cli/verbs/coord_views");
const worker = () => late("cli/verbs/coord_worker");

const one = (placeholder: string, brief: string) => ({
  kind: "tuple",
  parameters: [{ parse: String, placeholder, brief }],
} as const);
const lease = one("LEASE", "The lease, as the wake message spells it");

const serve = command<ServiceFlags, []>({
  brief: "Run the coordination engine in the foreground, or in the background with --detach",
  details:
    `Watches the State Hub and wakes the worker of a repository when a task, a workplan or a message is
for it: once for each state of it, one at a time, and never past a gate that is a person's to open.
Wakes go through the message service (tamq serve); without it they wait.

--orwell writes prompts and credentials in clear to coord/orwell.log: see tamq serve --help.`,
  usage: ["[--detach] [--quiet|--verbose] [--json] [--orwell]"],
  examples: [
    { run: "tamq coord serve", does: "in the foreground, log on standard error" },
    { run: "tamq coord serve --detach", does: "in the background, log in the state directory" },
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
  load: async () => ({ default: (await service()).serve }),
});

const stop = command<JsonFlag, []>({
  brief: "Stop the coordination engine; messages, workers and leases stay",
  usage: ["[--json]"],
  examples: [{ run: "tamq coord stop", does: "ends it within its grace period" }],
  parameters: { flags: { json } },
  load: async () => ({ default: (await service()).stop }),
});

const status = command<JsonFlag, []>({
  brief: "Show the health of the engine and of what it needs",
  usage: ["[--json]"],
  examples: [{ run: "tamq coord status", does: "status 0 when every part is well, 1 when not" }],
  parameters: { flags: { json } },
  load: async () => ({ default: (await show()).status }),
});

const number = {
  kind: "parsed",
  parse: count(1, 1000),
  optional: true,
  placeholder: "N",
  brief: "At most N, the latest of them",
} as const;

const triggers = command<views.TriggerFlags, []>({
  brief: "List what could wake a worker, newest first, and what keeps it",
  usage: ["[--state STATE] [--repo REPO] [-n N] [--json]"],
  examples: [{ run: "tamq coord triggers --state gated", does: "what waits for a person" }],
  parameters: {
    flags: {
      state: {
        kind: "enum",
        values: ["waiting", "gated", "leased", "done", "stopped"],
        optional: true,
        brief: "Triggers in this state",
      },
      repo: repo("Triggers for this repository"),
      limit: number,
      json,
    },
    aliases: { n: "limit" },
  },
  load: async () => ({ default: (await show()).triggers }),
});

const leases = command<views.LeaseFlags, []>({
  brief: "List who is at work, newest first",
  usage: ["[--all] [-n N] [--json]"],
  examples: [{ run: "tamq coord leases --all", does: "those that are over as well" }],
  parameters: {
    flags: { all: flag("Also those that are over"), limit: number, json },
    aliases: { n: "limit" },
  },
  load: async () => ({ default: (await show()).leases }),
});

const explain = command<JsonFlag, [string]>({
  brief: "Say why a task's worker was woken, or was not",
  usage: ["[--json] TASK"],
  examples: [{ run: "tamq coord explain api", does: "decisions, leases and receipts in order" }],
  parameters: {
    flags: { json },
    positional: one("TASK", "Id of a task, workplan, message or trigger"),
  },
  load: async () => ({ default: (await show()).explain }),
});

const approve = command<views.ApproveFlags, [string]>({
  brief: "Open one gate of one trigger, for a while",
  details: `Records your yes to one class of action for one trigger; it expires. Works at a terminal
outside the windows that tamq opened, and asks you to type a word. Gates of identity, of
authentication and of secrets in a text cannot be opened.`,
  usage: ["TRIGGER --action CLASS --why TEXT [--json]"],
  examples: [
    {
      run: "tamq coord approve 06zz… --action destructive --why 'old tables, backup made'",
      does: "its worker may be woken",
    },
  ],
  parameters: {
    flags: {
      action: { ...text("CLASS", "The gate, as `tamq coord triggers` names it"), optional: false },
      why: { ...text("TEXT", "Why; kept with the approval"), optional: false },
      json,
    },
    positional: one("TRIGGER", "Id of the trigger"),
  },
  load: async () => ({ default: (await show()).approve }),
});

const own = command<JsonFlag, []>({
  brief: "In a worker's window: show its leases",
  usage: ["[--json]"],
  examples: [{ run: "tamq coord lease", does: "what this window has been woken for" }],
  parameters: { flags: { json } },
  load: async () => ({ default: (await worker()).lease }),
});

function say(name: "ack" | "renew" | "complete", brief: string, does: string) {
  return command<JsonFlag, [string]>({
    brief: `In a worker's window: ${brief}`,
    usage: ["[--json] LEASE"],
    examples: [{ run: `tamq coord ${name} 06zz….7`, does }],
    parameters: { flags: { json }, positional: lease },
    load: async () => ({ default: (await worker())[name] }),
  });
}

const checkpoint = command<CheckpointFlags, [string]>({
  brief: "In a worker's window: say where the work stands",
  usage: [
    "LEASE --summary TEXT [--next TEXT] [--file PATH]...\n" +
    `                         [--blocked ${BLOCKED_REASONS.join("|")}] [--json]`,
  ],
  examples: [
    {
      run: "tamq coord checkpoint 06zz….7 --summary 'parser done' --next 'write its tests'",
      does: "whoever is woken next goes on from there",
    },
    {
      run: "tamq coord checkpoint 06zz….7 --summary 'needs a decision' --blocked human",
      does: "nobody is woken for it until a person approves",
    },
  ],
  parameters: {
    flags: {
      summary: { ...text("TEXT", "What is done"), optional: false },
      next: text("TEXT", "What is to be done next"),
      file: {
        kind: "parsed",
        parse: String,
        optional: true,
        variadic: true,
        placeholder: "PATH",
        brief: "A changed file; may be given several times",
      },
      blocked: {
        kind: "enum",
        values: BLOCKED_REASONS,
        optional: true,
        brief: "What keeps the work from going on",
      },
      json,
    },
    positional: lease,
  },
  load: async () => ({ default: (await worker()).checkpoint }),
});

const release = command<ReleaseFlags, [string]>({
  brief: "In a worker's window: let go of the work, with the last checkpoint",
  usage: ["[--stop] [--json] LEASE"],
  examples: [
    { run: "tamq coord release 06zz….7", does: "it is taken up again from its checkpoint" },
    { run: "tamq coord release 06zz….7 --stop", does: "it is not taken up again" },
  ],
  parameters: {
    flags: { stop: flag("It cannot be done; nobody is woken for it again"), json },
    positional: lease,
  },
  load: async () => ({ default: (await worker()).release }),
});

const purge = statePurge(
  "coord",
  "Remove old prompts, checkpoints and receipts that the State Hub has, while the engine is stopped",
);

export const coord = family("The coordination engine: wakes workers for what the State Hub holds", {
  serve,
  stop,
  status,
  purge,
  triggers,
  leases,
  explain,
  approve,
  lease: own,
  ack: say("ack", "take work on", "before the work begins"),
  renew: say("renew", "say that the work goes on", "the lease lasts for its full time again"),
  checkpoint,
  release,
  complete: say("complete", "say that the work is finished", "the task itself is closed apart"),
});
