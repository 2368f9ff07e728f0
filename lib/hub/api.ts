/**
 * THE route table of the State Hub: server, client types, OpenAPI and docs/statehub.md derive from
 * it (K-19). A State Hub of somebody else works with tamq when it answers these routes.
 */
import * as z from "zod/mini";
import { RECEIPT_FORMS, RECEIPT_KINDS } from "../model/receipt.ts";
import { MESSAGE_STATES, PLAN_STATUSES, TASK_STATUSES } from "./rules.ts";
import * as schema from "./schema.ts";

export const API_VERSION = "1.0";

type Shape = Record<string, z.ZodMiniType>;
interface RouteSpec {
  readonly method: "GET" | "POST" | "PATCH";
  /** Path parameters in braces; each matches one segment. */
  readonly path: `/v1/${string}`;
  readonly tag: string;
  readonly summary: string;
  readonly params: z.ZodMiniObject<Shape>;
  readonly query: z.ZodMiniObject<Shape>;
  readonly body: z.ZodMiniObject<Shape> | undefined;
  readonly response: z.ZodMiniType;
  readonly status: 200 | 201;
  /** `required`: the change is refused without `If-Match`. `optional`: checked when it is sent. */
  readonly ifMatch: "none" | "optional" | "required";
  /** `etag`: the answer carries one and `If-None-Match` is honoured. `events`: server-sent events. */
  readonly answers: "json" | "etag" | "events";
  /** Values of `error.reason` beyond those of every route. */
  readonly reasons: readonly string[];
}

const none = z.strictObject({});
const forms = schema.LIMITS;
const limit = z.optional(
  z.coerce.number().check(z.int(), z.minimum(1), z.maximum(forms.pageItems)),
);
const cursor = z.optional(z.string().check(z.maxLength(256)));
const bool = z.optional(z.enum(["true", "false"]));
const receiptId = z.optional(z.string().check(z.regex(RECEIPT_FORMS.id)));
const id = z.optional(schema.id);
const name = z.optional(schema.name);

const page = <T extends z.ZodMiniType>(item: T) =>
  z.object({ items: z.array(item), next_cursor: z.nullable(z.string().check(z.maxLength(256))) });

const base = {
  method: "GET",
  params: none,
  query: none,
  body: undefined,
  status: 200,
  ifMatch: "none",
  answers: "json",
  reasons: [],
} as const;
const create = { ...base, method: "POST", status: 201 } as const;

const taskParams = z.strictObject({ task_id: schema.id });
const planParams = z.strictObject({ workplan_id: schema.id });
const messageParams = z.strictObject({ message_id: schema.id });
const TASK_WRITE = [
  "unknown_dependency",
  "dependency_cycle",
  "unknown_workplan",
  "invalid_transition",
  "dependencies_unsatisfied",
  "block_required",
  "block_unexpected",
] as const;

export const feedQuery = z.strictObject({
  /** Changes after this point; absent: from the beginning. */
  cursor,
  /** Comma-separated; absent: all kinds. */
  kinds: z.optional(
    z.string().check(
      z.regex(
        /^(workplan|task|message|checkpoint|receipt)(,(workplan|task|message|checkpoint|receipt)){0,4}$/,
      ),
    ),
  ),
  limit,
});

export const routes = {
  hub: {
    ...base,
    path: "/v1/hub",
    tag: "hub",
    summary: "Tells that the hub lives, what it is, and where its change feed stands.",
    response: z.object({
      hub_id: schema.id,
      api_version: z.string().check(z.regex(/^\d{1,4}\.\d{1,4}$/)),
      version: z.string().check(z.maxLength(64)),
      started_at: z.iso.datetime(),
      /** The newest point of the change feed. */
      cursor: z.string().check(z.maxLength(128)),
    }),
  },
  openapi: {
    ...base,
    path: "/v1/openapi.json",
    tag: "hub",
    summary: "This interface as OpenAPI 3.1.",
    response: z.looseObject({ openapi: z.string() }),
  },
  listChanges: {
    ...base,
    path: "/v1/changes",
    tag: "changes",
    summary:
      "The change feed: each source's latest change, oldest first, with the record as it is now.",
    query: feedQuery,
    answers: "etag",
    response: z.object({
      changes: z.array(schema.change).check(z.maxLength(forms.pageItems)),
      next_cursor: z.string().check(z.maxLength(128)),
      has_more: z.boolean(),
    }),
    reasons: ["cursor_invalid", "cursor_expired"],
  },
  streamChanges: {
    ...base,
    path: "/v1/changes/events",
    tag: "changes",
    summary:
      "The change feed as server-sent events; `Last-Event-ID` resumes, a comment line every 15 s keeps it alive.",
    query: z.strictObject({ cursor, kinds: feedQuery.shape.kinds }),
    answers: "events",
    response: schema.change,
    reasons: ["cursor_invalid", "cursor_expired", "too_many_streams"],
  },
  listWorkplans: {
    ...base,
    path: "/v1/workplans",
    tag: "workplans",
    summary: "Workplans in the order of their creation.",
    query: z.strictObject({ repo: name, status: z.optional(z.enum(PLAN_STATUSES)), cursor, limit }),
    response: page(schema.workplan),
    reasons: ["cursor_invalid"],
  },
  createWorkplan: {
    ...create,
    path: "/v1/workplans",
    tag: "workplans",
    summary: "Creates a workplan.",
    body: schema.newWorkplan,
    response: schema.workplan,
    reasons: ["workplan_exists", "idempotency_conflict"],
  },
  getWorkplan: {
    ...base,
    path: "/v1/workplans/{workplan_id}",
    tag: "workplans",
    summary: "One workplan.",
    params: planParams,
    response: schema.workplan,
    answers: "etag",
    reasons: ["unknown_workplan"],
  },
  editWorkplan: {
    ...base,
    method: "PATCH",
    path: "/v1/workplans/{workplan_id}",
    tag: "workplans",
    summary: "Changes the fields that are given; its open tasks appear in the change feed again.",
    params: planParams,
    body: schema.editWorkplan,
    response: schema.workplan,
    ifMatch: "required",
    reasons: [
      "unknown_workplan",
      "revision_mismatch",
      "invalid_transition",
      "idempotency_conflict",
    ],
  },
  addWorkplanNote: {
    ...create,
    path: "/v1/workplans/{workplan_id}/notes",
    tag: "workplans",
    summary: "Adds a note; one that requests review stops work on the plan's tasks.",
    params: planParams,
    body: schema.newNote,
    response: schema.workplan,
    ifMatch: "optional",
    reasons: ["unknown_workplan", "too_many_notes", "idempotency_conflict"],
  },
  resolveWorkplanNote: {
    ...base,
    method: "POST",
    path: "/v1/workplans/{workplan_id}/notes/{note_id}/resolve",
    tag: "workplans",
    summary: "Marks a note as dealt with; a repeat changes nothing.",
    params: z.strictObject({ workplan_id: schema.id, note_id: schema.id }),
    body: schema.emptyBody,
    response: schema.workplan,
    ifMatch: "optional",
    reasons: ["unknown_workplan", "unknown_note"],
  },
  listTasks: {
    ...base,
    path: "/v1/tasks",
    tag: "tasks",
    summary: "Tasks in the order of their creation.",
    query: z.strictObject({
      repo: name,
      agent: id,
      status: z.optional(z.enum(TASK_STATUSES)),
      workplan_id: id,
      label: name,
      /** `true`: only those that a worker may take up now, most urgent first is up to the reader. */
      actionable: bool,
      cursor,
      limit,
    }),
    response: page(schema.task),
    reasons: ["cursor_invalid"],
  },
  createTask: {
    ...create,
    path: "/v1/tasks",
    tag: "tasks",
    summary: "Creates a task; its dependencies must exist.",
    body: schema.newTask,
    response: schema.task,
    reasons: ["task_exists", "idempotency_conflict", ...TASK_WRITE.slice(0, 3)],
  },
  getTask: {
    ...base,
    path: "/v1/tasks/{task_id}",
    tag: "tasks",
    summary: "One task.",
    params: taskParams,
    response: schema.task,
    answers: "etag",
    reasons: ["unknown_task"],
  },
  editTask: {
    ...base,
    method: "PATCH",
    path: "/v1/tasks/{task_id}",
    tag: "tasks",
    summary:
      "Changes the fields that are given. Completing a task puts its dependents into the change feed again.",
    params: taskParams,
    body: schema.editTask,
    response: schema.task,
    ifMatch: "required",
    reasons: ["unknown_task", "revision_mismatch", "idempotency_conflict", ...TASK_WRITE],
  },
  addTaskNote: {
    ...create,
    path: "/v1/tasks/{task_id}/notes",
    tag: "tasks",
    summary: "Adds a note; one that requests review stops work on the task.",
    params: taskParams,
    body: schema.newNote,
    response: schema.task,
    ifMatch: "optional",
    reasons: ["unknown_task", "too_many_notes", "idempotency_conflict"],
  },
  resolveTaskNote: {
    ...base,
    method: "POST",
    path: "/v1/tasks/{task_id}/notes/{note_id}/resolve",
    tag: "tasks",
    summary: "Marks a note as dealt with; a repeat changes nothing.",
    params: z.strictObject({ task_id: schema.id, note_id: schema.id }),
    body: schema.emptyBody,
    response: schema.task,
    ifMatch: "optional",
    reasons: ["unknown_task", "unknown_note"],
  },
  listMessages: {
    ...base,
    path: "/v1/messages",
    tag: "messages",
    summary: "Coordination messages in the order of their creation.",
    query: z.strictObject({
      target_repo: name,
      state: z.optional(z.enum(MESSAGE_STATES)),
      requests_action: bool,
      cursor,
      limit,
    }),
    response: page(schema.message),
    reasons: ["cursor_invalid"],
  },
  createMessage: {
    ...create,
    path: "/v1/messages",
    tag: "messages",
    summary: "Leaves a message for a repository.",
    body: schema.newMessage,
    response: schema.message,
    reasons: ["unknown_task", "idempotency_conflict"],
  },
  getMessage: {
    ...base,
    path: "/v1/messages/{message_id}",
    tag: "messages",
    summary: "One message; reading it here does not mark it as read.",
    params: messageParams,
    response: schema.message,
    answers: "etag",
    reasons: ["unknown_message"],
  },
  readMessage: {
    ...base,
    method: "POST",
    path: "/v1/messages/{message_id}/read",
    tag: "messages",
    summary: "Marks a message as read; a repeat changes nothing.",
    params: messageParams,
    body: schema.emptyBody,
    response: schema.message,
    ifMatch: "optional",
    reasons: ["unknown_message"],
  },
  ackMessage: {
    ...base,
    method: "POST",
    path: "/v1/messages/{message_id}/ack",
    tag: "messages",
    summary: "Acknowledges a message, which is then read as well; a repeat changes nothing.",
    params: messageParams,
    body: schema.emptyBody,
    response: schema.message,
    ifMatch: "optional",
    reasons: ["unknown_message"],
  },
  listCheckpoints: {
    ...base,
    path: "/v1/checkpoints",
    tag: "checkpoints",
    summary: "Checkpoints, newest first.",
    query: z.strictObject({ repo: name, task_id: id, lease_id: id, cursor, limit }),
    response: page(schema.checkpoint),
    reasons: ["cursor_invalid"],
  },
  createCheckpoint: {
    ...create,
    path: "/v1/checkpoints",
    tag: "checkpoints",
    summary: "Records where a worker stands; checkpoints are never changed.",
    body: schema.newCheckpoint,
    response: schema.checkpoint,
    reasons: ["unknown_task", "idempotency_conflict"],
  },
  listReceipts: {
    ...base,
    path: "/v1/receipts",
    tag: "receipts",
    summary: "Receipts, newest first.",
    query: z.strictObject({
      kind: z.optional(z.enum(RECEIPT_KINDS)),
      trigger_id: receiptId,
      lease_id: receiptId,
      source_id: receiptId,
      cursor,
      limit,
    }),
    response: page(schema.receipt),
    reasons: ["cursor_invalid"],
  },
  publishReceipt: {
    ...create,
    path: "/v1/receipts",
    tag: "receipts",
    summary: "Publishes a receipt; the same idempotency key leaves one.",
    body: schema.receipt,
    response: schema.receipt,
    reasons: ["idempotency_conflict"],
  },
} as const satisfies Record<string, RouteSpec>;

export type RouteName = keyof typeof routes;
export type Route = RouteSpec;
type Part<K extends RouteName, P extends "params" | "query"> = z.infer<(typeof routes)[K][P]>;
export type ParamsOf<K extends RouteName> = Part<K, "params">;
export type QueryOf<K extends RouteName> = Part<K, "query">;
export type BodyOf<K extends RouteName> = (typeof routes)[K]["body"] extends z.ZodMiniType
  ? z.infer<(typeof routes)[K]["body"]>
  : undefined;
export type AnswerOf<K extends RouteName> = z.infer<(typeof routes)[K]["response"]>;

/** The ETag of a record's revision. */
export function etag(revision: number): string {
  return `"${revision}"`;
}
