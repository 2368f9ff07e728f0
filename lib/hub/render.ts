/** The hub's records for people (C-01): every text of another program made safe. */
import { displaySafe, displaySafeBlock, displayWidth, relativeTime } from "../base/display.ts";
import type { HubMessage, Note, Task, Workplan } from "./schema.ts";

/** Columns padded to their widest cell, the last one not. */
function columns(rows: readonly (readonly string[])[]): string[] {
  const safe = rows.map((row) => row.map(displaySafe));
  const widths: number[] = [];
  for (const row of safe) {
    row.forEach((cell, i) => widths[i] = Math.max(widths[i] ?? 0, displayWidth(cell)));
  }
  return safe.map((row) =>
    row.map((cell, i) =>
      i === row.length - 1 ? cell : cell + " ".repeat(widths[i]! - displayWidth(cell))
    ).join("  ").trimEnd()
  );
}

/** What keeps the tasks of a plan from being worked on, beside its status. */
export function planWaitsFor(plan: Workplan): string {
  if (plan.needs_human) return "needs a person";
  return openReviews(plan.notes) > 0 ? "review requested" : "";
}

/** Why nobody is at it, in a word or two; empty when a worker may take it up. */
export function waitsFor(task: Task): string {
  if (task.status !== "ready" && task.status !== "active") {
    return task.block === null ? "" : `blocked: ${task.block.kind}`;
  }
  if (task.needs_human) return "needs a person";
  if (openReviews(task.notes) > 0) return "review requested";
  const plan = task.workplan;
  if (plan !== null && plan.status !== "ready" && plan.status !== "active") {
    return `plan ${plan.status}`;
  }
  if (plan?.gated) return "plan needs a person";
  if (task.unsatisfied.length > 0) return `waits for ${task.unsatisfied.join(", ")}`;
  return "";
}

function openReviews(notes: readonly Note[]): number {
  return notes.filter((note) => note.requests_review && note.resolved_at === null).length;
}

export function taskTable(tasks: readonly Task[]): string[] {
  if (tasks.length === 0) return ["no tasks"];
  return columns([
    ["TASK", "STATUS", "REPOSITORY", "P", "WAITS", "TITLE"],
    ...tasks.map((task) => [
      task.task_id,
      task.status,
      task.repo,
      String(task.priority),
      waitsFor(task),
      task.title,
    ]),
  ]);
}

export function planTable(plans: readonly Workplan[]): string[] {
  if (plans.length === 0) return ["no workplans"];
  return columns([
    ["WORKPLAN", "STATUS", "REPOSITORY", "WAITS", "TITLE"],
    ...plans.map((plan) => [
      plan.workplan_id,
      plan.status,
      plan.repo ?? "-",
      planWaitsFor(plan),
      plan.title,
    ]),
  ]);
}

export function messageTable(messages: readonly HubMessage[]): string[] {
  if (messages.length === 0) return ["no messages"];
  return columns([
    ["MESSAGE", "STATE", "FROM", "TO", "ASKS", "SUBJECT"],
    ...messages.map((message) => [
      message.message_id,
      message.state,
      message.sender,
      message.target_repo,
      message.requests_action ? "yes" : "",
      message.subject,
    ]),
  ]);
}

function facts(rows: readonly (readonly [string, string | null | undefined])[]): string[] {
  return columns(rows.flatMap(([name, value]) => value ? [[name, value]] : []));
}

function text(body: string): string[] {
  return body === "" ? [] : ["", displaySafeBlock(body, "  │ ")];
}

function noteLines(notes: readonly Note[], now: number): string[] {
  return notes.flatMap((note) => {
    const state = note.resolved_at !== null
      ? "resolved"
      : note.requests_review
      ? "requests review"
      : "note";
    return [
      "",
      `${note.note_id}  ${displaySafe(note.author)}  ${state}  ${
        relativeTime(note.created_at, now)
      }`,
      displaySafeBlock(note.text, "  │ "),
    ];
  });
}

/** For people: the moment, and how long ago that is. */
function moment(time: string | null, now: number): string | null {
  return time && `${time} (${relativeTime(time, now)})`;
}

export function taskDetails(task: Task, now: number): string[] {
  return [
    ...facts([
      ["task", task.task_id],
      ["title", task.title],
      ["status", task.status],
      ["waits", waitsFor(task)],
      ["repository", task.repo],
      ["agent", task.agent],
      ["workplan", task.workplan && `${task.workplan.workplan_id} (${task.workplan.status})`],
      ["priority", String(task.priority)],
      ["depends on", task.dependencies.join(", ")],
      ["actions", task.required_actions.join(", ")],
      ["labels", task.labels.join(", ")],
      ["blocked", task.block && `${task.block.kind} since ${moment(task.block.blocked_at, now)}`],
      ["revision", String(task.revision)],
      ["created", moment(task.created_at, now)],
      ["updated", moment(task.updated_at, now)],
      ["completed", moment(task.completed_at, now)],
    ]),
    ...(task.block === null ? [] : text(task.block.note)),
    ...text(task.description),
    ...noteLines(task.notes, now),
  ];
}

export function planDetails(plan: Workplan, now: number): string[] {
  return [
    ...facts([
      ["workplan", plan.workplan_id],
      ["title", plan.title],
      ["status", plan.status],
      ["needs human", plan.needs_human ? "yes" : ""],
      ["repository", plan.repo],
      ["agent", plan.agent],
      ["actions", plan.required_actions.join(", ")],
      ["labels", plan.labels.join(", ")],
      ["revision", String(plan.revision)],
      ["created", moment(plan.created_at, now)],
      ["updated", moment(plan.updated_at, now)],
    ]),
    ...text(plan.description),
    ...noteLines(plan.notes, now),
  ];
}

export function messageDetails(message: HubMessage, now: number): string[] {
  return [
    ...facts([
      ["message", message.message_id],
      ["subject", message.subject],
      ["from", message.sender],
      ["to", message.target_repo],
      ["agent", message.target_agent],
      ["state", message.state],
      ["asks for action", message.requests_action ? "yes" : "no"],
      ["needs human", message.needs_human ? "yes" : ""],
      ["actions", message.required_actions.join(", ")],
      ["task", message.task_id],
      ["created", moment(message.created_at, now)],
      ["read", moment(message.read_at, now)],
      ["acknowledged", moment(message.acknowledged_at, now)],
    ]),
    ...text(message.body),
  ];
}
