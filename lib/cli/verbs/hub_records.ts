/** `tamq hub task|plan|message …`: flags to calls, results to lines. */
import { loadSettings } from "../../config.ts";
import { connectHub } from "../../coord/connect.ts";
import * as hubVerbs from "../../coord/hub_verbs.ts";
import type { StateHubClient } from "../../coord/statehub_client.ts";
import type { PlanStatus } from "../../hub/rules.ts";
import type { BlockedReason } from "../../model/checkpoint.ts";
import type { Verb } from "../command.ts";
import type { CliContext } from "../context.ts";
import { usageError } from "../errors.ts";
import { continued, lookOf } from "../layout.ts";
import type { JsonFlag } from "./service.ts";

async function show(
  context: CliContext,
  json: boolean | undefined,
  work: (hub: StateHubClient) => Promise<hubVerbs.VerbResult<unknown>>,
): Promise<void> {
  using hub = connectHub(await loadSettings(context.env), context.env);
  const { records, lines } = await work(hub);
  if (json) {
    for (const record of records) context.out(JSON.stringify(record));
    return;
  }
  const look = lookOf(context);
  for (const line of lines) context.out(continued(line, look));
}

/** The parts of a comma-separated option. */
function list(text: string | undefined): string[] | undefined {
  return text?.split(",").map((part) => part.trim()).filter((part) => part !== "");
}

/** What was not given is left out, so that it stays as it is. */
function given<T extends object>(fields: T): T {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined)) as T;
}

interface TaskFields extends JsonFlag {
  readonly plan?: string;
  readonly agent?: string;
  readonly depends?: string;
  readonly action?: string;
  readonly label?: string;
  readonly description?: string;
  readonly priority?: number;
}

function fieldsOf(flags: TaskFields) {
  return given({
    workplan_id: flags.plan,
    agent: flags.agent,
    dependencies: list(flags.depends),
    required_actions: list(flags.action),
    labels: list(flags.label),
    description: flags.description,
    priority: flags.priority,
  });
}

export interface TaskAddFlags extends TaskFields {
  readonly repo: string;
  readonly id?: string;
  readonly ready?: boolean;
  readonly needsHuman?: boolean;
}
export const taskAdd: Verb<TaskAddFlags, [string]> = function (flags, title) {
  return show(this, flags.json, (hub) =>
    hubVerbs.taskAdd(hub, {
      title,
      repo: flags.repo,
      ...fieldsOf(flags),
      ...given({ task_id: flags.id, needs_human: flags.needsHuman }),
      status: flags.ready ? "ready" : "draft",
    }));
};

export interface TaskListFlags extends JsonFlag {
  readonly repo?: string;
  readonly status?: "draft" | "ready" | "active" | "blocked" | "done" | "cancelled";
  readonly plan?: string;
  readonly label?: string;
  readonly agent?: string;
  readonly actionable?: boolean;
}
export const taskList: Verb<TaskListFlags> = function (flags) {
  return show(this, flags.json, (hub) =>
    hubVerbs.taskList(
      hub,
      given({
        repo: flags.repo,
        status: flags.status,
        workplan_id: flags.plan,
        label: flags.label,
        agent: flags.agent,
        actionable: flags.actionable ? "true" as const : undefined,
      }),
    ));
};

export const taskShow: Verb<JsonFlag, [string]> = function ({ json }, id) {
  return show(this, json, (hub) => hubVerbs.taskShow(hub, id));
};

export interface TaskEditFlags extends TaskFields {
  readonly title?: string;
  readonly repo?: string;
  readonly needsHuman?: boolean;
}
export const taskEdit: Verb<TaskEditFlags, [string]> = function (flags, id) {
  const body = {
    ...fieldsOf(flags),
    ...given({ title: flags.title, repo: flags.repo, needs_human: flags.needsHuman }),
  };
  if (Object.keys(body).length === 0) {
    throw usageError("nothing to change", "name a field, for example --priority 1");
  }
  return show(this, flags.json, (hub) => hubVerbs.taskEdit(hub, id, body));
};

const taskMove = (
  status: "draft" | "ready" | "active" | "done" | "cancelled",
): Verb<JsonFlag, [string]> =>
  function ({ json }, id) {
    return show(this, json, (hub) => hubVerbs.taskEdit(hub, id, { status }));
  };
export const taskMoves = {
  draft: taskMove("draft"),
  ready: taskMove("ready"),
  start: taskMove("active"),
  done: taskMove("done"),
  cancel: taskMove("cancelled"),
} as const;
export type TaskMoves = typeof taskMoves;

export interface TaskBlockFlags extends JsonFlag {
  readonly kind: BlockedReason;
  readonly note?: string;
}
export const taskBlock: Verb<TaskBlockFlags, [string]> = function ({ kind, note, json }, id) {
  return show(this, json, (hub) => hubVerbs.taskBlock(hub, id, { kind, note: note ?? "" }));
};

export interface NoteFlags extends JsonFlag {
  readonly review?: boolean;
  readonly author?: string;
}
export const taskNote: Verb<NoteFlags, [string, string]> = function (flags, id, text) {
  return show(this, flags.json, (hub) => hubVerbs.taskNote(hub, id, noteOf(flags, text)));
};
function noteOf({ review, author }: NoteFlags, text: string) {
  return { text, requests_review: review === true, ...given({ author }) };
}

export const taskResolve: Verb<JsonFlag, [string, string]> = function ({ json }, id, note) {
  return show(this, json, (hub) => hubVerbs.taskResolve(hub, id, note));
};

/** Of workplans as of tasks. */
interface PlanFields extends JsonFlag {
  readonly repo?: string;
  readonly agent?: string;
  readonly action?: string;
  readonly label?: string;
  readonly description?: string;
  readonly needsHuman?: boolean;
}

function planFieldsOf(flags: PlanFields) {
  return given({
    repo: flags.repo,
    agent: flags.agent,
    required_actions: list(flags.action),
    labels: list(flags.label),
    description: flags.description,
    needs_human: flags.needsHuman,
  });
}

export interface PlanAddFlags extends PlanFields {
  readonly id?: string;
  readonly ready?: boolean;
  readonly active?: boolean;
}
export const planAdd: Verb<PlanAddFlags, [string]> = function (flags, title) {
  return show(this, flags.json, (hub) =>
    hubVerbs.planAdd(hub, {
      title,
      ...planFieldsOf(flags),
      ...given({ workplan_id: flags.id }),
      status: flags.active ? "active" : flags.ready ? "ready" : "draft",
    }));
};

export interface PlanEditFlags extends PlanFields {
  readonly title?: string;
}
export const planEdit: Verb<PlanEditFlags, [string]> = function (flags, id) {
  const body = { ...planFieldsOf(flags), ...given({ title: flags.title }) };
  if (Object.keys(body).length === 0) {
    throw usageError("nothing to change", "name a field, for example --no-needs-human");
  }
  return show(this, flags.json, (hub) => hubVerbs.planEdit(hub, id, body));
};

export const planNote: Verb<NoteFlags, [string, string]> = function (flags, id, text) {
  return show(this, flags.json, (hub) => hubVerbs.planNote(hub, id, noteOf(flags, text)));
};

export const planResolve: Verb<JsonFlag, [string, string]> = function ({ json }, id, note) {
  return show(this, json, (hub) => hubVerbs.planResolve(hub, id, note));
};

export interface PlanListFlags extends JsonFlag {
  readonly repo?: string;
  readonly status?: PlanStatus;
}
export const planList: Verb<PlanListFlags> = function ({ repo, status, json }) {
  return show(this, json, (hub) => hubVerbs.planList(hub, given({ repo, status })));
};

export const planShow: Verb<JsonFlag, [string]> = function ({ json }, id) {
  return show(this, json, (hub) => hubVerbs.planShow(hub, id));
};

const planMove = (
  status: "draft" | "ready" | "active" | "paused" | "done" | "cancelled",
): Verb<JsonFlag, [string]> =>
  function ({ json }, id) {
    return show(this, json, (hub) => hubVerbs.planEdit(hub, id, { status }));
  };
export const planMoves = {
  draft: planMove("draft"),
  ready: planMove("ready"),
  start: planMove("active"),
  pause: planMove("paused"),
  done: planMove("done"),
  cancel: planMove("cancelled"),
} as const;
export type PlanMoves = typeof planMoves;

export interface MessageAddFlags extends JsonFlag {
  readonly to: string;
  readonly body?: string;
  readonly ask?: boolean;
  readonly from?: string;
  readonly task?: string;
  readonly agent?: string;
  readonly needsHuman?: boolean;
  readonly action?: string;
}
const MOST_BYTES = 32_768;
export const messageAdd: Verb<MessageAddFlags, [string]> = async function (flags, subject) {
  let body = flags.body ?? "";
  if (body === "-") {
    const bytes = await this.readStdin(MOST_BYTES);
    if (bytes === undefined) {
      throw usageError("the text is too long", "write a file, and its path");
    }
    body = new TextDecoder().decode(bytes).replace(/\n$/, "");
  }
  await show(this, flags.json, (hub) =>
    hubVerbs.messageAdd(hub, {
      target_repo: flags.to,
      subject,
      body,
      requests_action: flags.ask === true,
      ...given({
        sender: flags.from,
        task_id: flags.task,
        target_agent: flags.agent,
        needs_human: flags.needsHuman,
        required_actions: list(flags.action),
      }),
    }));
};

export interface MessageListFlags extends JsonFlag {
  readonly repo?: string;
  readonly state?: "unread" | "read" | "acknowledged";
  readonly ask?: boolean;
}
export const messageList: Verb<MessageListFlags> = function (flags) {
  const filter = given({
    target_repo: flags.repo,
    state: flags.state,
    requests_action: flags.ask ? "true" as const : undefined,
  });
  return show(this, flags.json, (hub) => hubVerbs.messageList(hub, filter));
};

export interface MessageShowFlags extends JsonFlag {
  readonly read?: boolean;
}
export const messageShow: Verb<MessageShowFlags, [string]> = function ({ read, json }, id) {
  return show(this, json, (hub) => hubVerbs.messageShow(hub, id, read === true));
};

export const messageAck: Verb<JsonFlag, [string]> = function ({ json }, id) {
  return show(this, json, (hub) => hubVerbs.messageAck(hub, id));
};
