/**
 * What `tamq hub task|plan|message …` do, apart from the command line: each takes a client and plain
 * values, and returns records and lines. Registration and flags belong to lib/cli.
 */
import { systemClock } from "../base/clock.ts";
import { displaySafe } from "../base/display.ts";
import { TamqError } from "../base/errors.ts";
import type { StateHubClient } from "./statehub_client.ts";
import type { BodyOf, QueryOf } from "../hub/api.ts";
import {
  messageDetails,
  messageTable,
  planDetails,
  planTable,
  taskDetails,
  taskTable,
} from "../hub/render.ts";
import type { TaskStatus } from "../hub/rules.ts";
import type { HubMessage, Task, Workplan } from "../hub/schema.ts";

/** What a verb found or did: with `--json` one record a line, else the lines. */
export interface VerbResult<T> {
  readonly records: readonly T[];
  /** For people; already safe to print. */
  readonly lines: readonly string[];
}

type Body = BodyOf<"editTask">;

function told<T>(record: T, line: string): VerbResult<T> {
  return { records: [record], lines: [line] };
}

/** Follows the pages; at most `most` records, for a person's screen as for a program's memory. */
async function all<T>(
  most: number,
  next: (cursor: string | undefined) => Promise<{ items: T[]; next_cursor: string | null }>,
): Promise<T[]> {
  const items: T[] = [];
  let cursor: string | undefined;
  do {
    const page = await next(cursor);
    items.push(...page.items);
    cursor = page.next_cursor ?? undefined;
  } while (cursor !== undefined && items.length < most);
  return items.slice(0, most);
}
const MOST = 10_000;

// --- tasks ---

export async function taskAdd(
  hub: StateHubClient,
  input: BodyOf<"createTask">,
): Promise<VerbResult<Task>> {
  const { value } = await hub.call("createTask", { body: input });
  return told(value, `added ${value.task_id} (${value.status})`);
}

export async function taskList(
  hub: StateHubClient,
  filter: Omit<QueryOf<"listTasks">, "cursor" | "limit"> = {},
): Promise<VerbResult<Task>> {
  const tasks = await all(
    MOST,
    async (cursor) =>
      (await hub.call("listTasks", { query: { ...filter, cursor, limit: 200 } })).value,
  );
  return { records: tasks, lines: taskTable(tasks) };
}

export async function taskShow(hub: StateHubClient, id: string): Promise<VerbResult<Task>> {
  const { value } = await hub.call("getTask", { params: { task_id: id } });
  return { records: [value], lines: taskDetails(value, systemClock.now()) };
}

/** To `ready`: a worker may take it up once its dependencies are done. */
export function taskReady(hub: StateHubClient, id: string): Promise<VerbResult<Task>> {
  return taskMove(hub, id, "ready");
}

export function taskDone(hub: StateHubClient, id: string): Promise<VerbResult<Task>> {
  return taskMove(hub, id, "done");
}

export function taskBlock(
  hub: StateHubClient,
  id: string,
  block: NonNullable<Body["block"]>,
): Promise<VerbResult<Task>> {
  return taskEdit(hub, id, { status: "blocked", block });
}

function taskMove(hub: StateHubClient, id: string, status: TaskStatus): Promise<VerbResult<Task>> {
  return taskEdit(hub, id, { status });
}

/**
 * Changes fields of a task. When somebody else is faster it is looked at again: a person's word on
 * one field does not depend on what became of the others.
 */
export async function taskEdit(
  hub: StateHubClient,
  id: string,
  body: Body,
): Promise<VerbResult<Task>> {
  const params = { task_id: id };
  const value = await retryRaces(async () => {
    const { value: { revision } } = await hub.call("getTask", { params });
    return (await hub.call("editTask", { params, ifMatch: revision, body })).value;
  });
  return told(value, `${value.task_id} is ${value.status}`);
}

export async function taskNote(
  hub: StateHubClient,
  id: string,
  note: BodyOf<"addTaskNote">,
): Promise<VerbResult<Task>> {
  const { value } = await hub.call("addTaskNote", { params: { task_id: id }, body: note });
  return told(value, `noted ${value.notes.at(-1)!.note_id} on ${id}`);
}

export async function taskResolve(
  hub: StateHubClient,
  id: string,
  note: string,
): Promise<VerbResult<Task>> {
  const params = { task_id: id, note_id: note };
  const { value } = await hub.call("resolveTaskNote", { params, body: {} });
  return told(value, `resolved ${note} on ${id}`);
}

// --- workplans ---

export async function planAdd(
  hub: StateHubClient,
  input: BodyOf<"createWorkplan">,
): Promise<VerbResult<Workplan>> {
  const { value } = await hub.call("createWorkplan", { body: input });
  return told(value, `added ${value.workplan_id} (${value.status})`);
}

export async function planList(
  hub: StateHubClient,
  filter: Omit<QueryOf<"listWorkplans">, "cursor" | "limit"> = {},
): Promise<VerbResult<Workplan>> {
  const plans = await all(
    MOST,
    async (cursor) =>
      (await hub.call("listWorkplans", { query: { ...filter, cursor, limit: 200 } })).value,
  );
  return { records: plans, lines: planTable(plans) };
}

/** The plan and its tasks. */
export async function planShow(
  hub: StateHubClient,
  id: string,
): Promise<VerbResult<Workplan | Task>> {
  const { value } = await hub.call("getWorkplan", { params: { workplan_id: id } });
  const tasks = await taskList(hub, { workplan_id: id });
  return {
    records: [value, ...tasks.records],
    lines: [...planDetails(value, systemClock.now()), "", ...tasks.lines],
  };
}

export async function planEdit(
  hub: StateHubClient,
  id: string,
  body: BodyOf<"editWorkplan">,
): Promise<VerbResult<Workplan>> {
  const params = { workplan_id: id };
  const value = await retryRaces(async () => {
    const { value: { revision } } = await hub.call("getWorkplan", { params });
    return (await hub.call("editWorkplan", { params, ifMatch: revision, body })).value;
  });
  return told(value, `${value.workplan_id} is ${value.status}`);
}

export async function planNote(
  hub: StateHubClient,
  id: string,
  note: BodyOf<"addWorkplanNote">,
): Promise<VerbResult<Workplan>> {
  const { value } = await hub.call("addWorkplanNote", { params: { workplan_id: id }, body: note });
  return told(value, `noted ${value.notes.at(-1)!.note_id} on ${id}`);
}

export async function planResolve(
  hub: StateHubClient,
  id: string,
  note: string,
): Promise<VerbResult<Workplan>> {
  const params = { workplan_id: id, note_id: note };
  const { value } = await hub.call("resolveWorkplanNote", { params, body: {} });
  return told(value, `resolved ${note} on ${id}`);
}

// --- messages ---

export async function messageAdd(
  hub: StateHubClient,
  input: BodyOf<"createMessage">,
): Promise<VerbResult<HubMessage>> {
  const { value } = await hub.call("createMessage", { body: input });
  return told(value, `left ${value.message_id} for ${displaySafe(value.target_repo)}`);
}

export async function messageList(
  hub: StateHubClient,
  filter: Omit<QueryOf<"listMessages">, "cursor" | "limit"> = {},
): Promise<VerbResult<HubMessage>> {
  const messages = await all(
    MOST,
    async (cursor) =>
      (await hub.call("listMessages", { query: { ...filter, cursor, limit: 200 } })).value,
  );
  return { records: messages, lines: messageTable(messages) };
}

/** Shows a message, and marks it as read when `markRead` says so. */
export async function messageShow(
  hub: StateHubClient,
  id: string,
  markRead: boolean,
): Promise<VerbResult<HubMessage>> {
  const params = { message_id: id };
  const { value } = markRead
    ? await hub.call("readMessage", { params, body: {} })
    : await hub.call("getMessage", { params });
  return { records: [value], lines: messageDetails(value, systemClock.now()) };
}

export async function messageAck(
  hub: StateHubClient,
  id: string,
): Promise<VerbResult<HubMessage>> {
  const { value } = await hub.call("ackMessage", { params: { message_id: id }, body: {} });
  return told(value, `${value.message_id} is ${value.state}`);
}

/** How often a person's change is tried anew when others keep changing the same record. */
const RACES = 5;

async function retryRaces<T>(work: () => Promise<T>): Promise<T> {
  for (let attempt = 1;; attempt++) {
    try {
      return await work();
    } catch (error) {
      const lost = error instanceof TamqError && error.reason === "revision_mismatch";
      if (!lost || attempt === RACES) throw error;
    }
  }
}
