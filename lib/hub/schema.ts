/** Records of the State Hub as zod schemas; types of client and server derive from them (K-19). */
import * as z from "zod/mini";
import { BLOCKED_REASONS, CHECKPOINT_LIMITS } from "../model/checkpoint.ts";
import { ACTION_CLASS } from "../model/policy.ts";
import {
  type Receipt,
  RECEIPT_FIELDS,
  RECEIPT_FORMS,
  RECEIPT_KINDS,
  type ReceiptField,
} from "../model/receipt.ts";
import { TRIGGER_SOURCES } from "../model/trigger.ts";
import { MESSAGE_STATES, PLAN_STATUSES, TASK_STATUSES } from "./rules.ts";

// Without a locale, zod/mini says "Invalid input" and no more.
z.config(z.locales.en());

/** Bounds of what the hub keeps; sizes in characters unless the name says otherwise. */
export const LIMITS = Object.freeze({
  requestBytes: 64 * 1024,
  urlBytes: 4096,
  /** A page ends before it grows past this, so that a client can bound what it reads. */
  pageBytes: 2 * 1024 * 1024,
  pageItems: 500,
  title: 256,
  text: 8192,
  note: 2000,
  labels: 32,
  dependencies: 256,
  notes: 64,
  actions: 32,
});

/** Ids are chosen by the hub, or by whoever creates the record. */
export const id = z.string().check(z.regex(/^[A-Za-z0-9][A-Za-z0-9._:-]{0,127}$/, "is not an id"));
// deno-lint-ignore no-control-regex
const LINE = /^[^\u0000-\u001f\u007f-\u009f]*$/;
// deno-lint-ignore no-control-regex
const PROSE = /^[^\u0000-\u0008\u000b-\u001f\u007f-\u009f]*$/;
const line = z.regex(LINE, "must be one line without control characters");
const prose = z.regex(PROSE, "must not hold control characters other than line feed and tab");
// Half a surrogate pair has no UTF-8 form: the store would silently keep another text.
const unicode = z.refine<string>((value) => value.isWellFormed(), "is not valid Unicode text");
const oneLine = (max: number) => z.string().check(z.minLength(1), z.maxLength(max), line, unicode);
const text = (max: number) => z.string().check(z.maxLength(max), prose, unicode);
export const name = oneLine(256);
const time = z.iso.datetime();
const revision = z.int().check(z.minimum(1));
const actionClass = z.string().check(z.regex(ACTION_CLASS, "is not a class of action"));
const label = oneLine(64);

/** A remark by a person; with `requests_review`, work stops until it is resolved (K-04). */
export const note = z.object({
  note_id: id,
  text: text(LIMITS.note),
  requests_review: z.boolean(),
  author: name,
  created_at: time,
  resolved_at: z.nullable(time),
});

/** What last changed that matters to whether a worker is woken; its revision is the trigger's (K-02). */
export const wake = z.object({
  revision,
  reason: z.enum(["task_actionable", "dependency_satisfied"]),
});

const common = {
  needs_human: z.boolean(),
  required_actions: z.array(actionClass),
  /** Grows with every change; the ETag is `"<revision>"`. */
  revision,
  wake,
  created_at: time,
  updated_at: time,
};

export const workplan = z.object({
  workplan_id: id,
  title: oneLine(LIMITS.title),
  description: text(LIMITS.text),
  repo: z.nullable(name),
  agent: z.nullable(id),
  status: z.enum(PLAN_STATUSES),
  labels: z.array(label),
  notes: z.array(note),
  ...common,
});

export const block = z.object({
  kind: z.enum(BLOCKED_REASONS),
  note: text(LIMITS.note),
  blocked_at: time,
});

export const task = z.object({
  task_id: id,
  /** The plan it belongs to; `gated`: a person is asked for on the plan itself. */
  workplan: z.nullable(z.object({
    workplan_id: id,
    status: z.enum(PLAN_STATUSES),
    gated: z.boolean(),
  })),
  title: oneLine(LIMITS.title),
  description: text(LIMITS.text),
  repo: name,
  agent: z.nullable(id),
  status: z.enum(TASK_STATUSES),
  /** Set while the status is `blocked`. */
  block: z.nullable(block),
  dependencies: z.array(id),
  /** Those of them that are not done. */
  unsatisfied: z.array(id),
  labels: z.array(label),
  /** 0 (first) to 9. */
  priority: z.int().check(z.minimum(0), z.maximum(9)),
  notes: z.array(note),
  completed_at: z.nullable(time),
  ...common,
});

export const message = z.object({
  message_id: id,
  sender: name,
  target_repo: name,
  target_agent: z.nullable(id),
  subject: oneLine(LIMITS.title),
  body: text(LIMITS.text),
  requests_action: z.boolean(),
  task_id: z.nullable(id),
  state: z.enum(MESSAGE_STATES),
  read_at: z.nullable(time),
  acknowledged_at: z.nullable(time),
  ...common,
});

const checkpointFields = {
  lease_id: id,
  task_id: z.optional(id),
  repo: name,
  summary: text(CHECKPOINT_LIMITS.summary),
  files_changed: z.array(oneLine(CHECKPOINT_LIMITS.file)).check(
    z.maxLength(CHECKPOINT_LIMITS.files),
  ),
  next_action: z.optional(text(CHECKPOINT_LIMITS.nextAction)),
  blocked_reason: z.nullable(z.enum(BLOCKED_REASONS)),
  recorded_at: time,
};
export const checkpoint = z.object({ checkpoint_id: id, ...checkpointFields });

type ReceiptShape = {
  [K in ReceiptField]: undefined extends Receipt[K]
    ? z.ZodMiniOptional<z.ZodMiniType<Exclude<Receipt[K], undefined>>>
    : z.ZodMiniType<Receipt[K]>;
};
/** The fields of a receipt by their declared forms: this schema cannot drift from the model (K-14). */
function receiptShape(): ReceiptShape {
  const forms: Record<string, z.ZodMiniType> = {
    id: z.string().check(z.regex(RECEIPT_FORMS.id)),
    word: z.string().check(z.regex(RECEIPT_FORMS.word)),
    repo: z.string().check(z.regex(RECEIPT_FORMS.repo)),
    time: z.string().check(z.regex(RECEIPT_FORMS.time)),
    count: z.int().check(z.nonnegative()),
    kind: z.enum(RECEIPT_KINDS),
    source: z.enum(TRIGGER_SOURCES),
  };
  const shape: Record<string, z.ZodMiniType> = {};
  for (const [field, form] of Object.entries(RECEIPT_FIELDS)) {
    shape[field] = form.endsWith("?") ? z.optional(forms[form.slice(0, -1)]!) : forms[form]!;
  }
  return shape as ReceiptShape;
}
export const receipt = z.strictObject(receiptShape());

/** Optional on every change: repeating it with the same key and content changes nothing more. */
const idempotency = { idempotency_key: z.optional(z.string().check(z.regex(RECEIPT_FORMS.id))) };

const editable = {
  title: oneLine(LIMITS.title),
  description: text(LIMITS.text),
  agent: z.nullable(id),
  labels: z.array(label).check(z.maxLength(LIMITS.labels)),
  needs_human: z.boolean(),
  required_actions: z.array(actionClass).check(z.maxLength(LIMITS.actions)),
};
const editableTask = {
  ...editable,
  repo: name,
  workplan_id: z.nullable(id),
  dependencies: z.array(id).check(z.maxLength(LIMITS.dependencies)),
  priority: z.int().check(z.minimum(0), z.maximum(9)),
};

/** Every field optional: absent means unchanged. */
function partial<T extends Record<string, z.ZodMiniType>>(
  fields: T,
): { [K in keyof T]: z.ZodMiniOptional<T[K]> } {
  return Object.fromEntries(
    Object.entries(fields).map(([key, schema]) => [key, z.optional(schema)]),
  ) as { [K in keyof T]: z.ZodMiniOptional<T[K]> };
}

export const newWorkplan = z.strictObject({
  ...partial(editable),
  ...idempotency,
  workplan_id: z.optional(id),
  title: editable.title,
  repo: z.optional(z.nullable(name)),
  status: z.optional(z.enum(["draft", "ready", "active"])),
});
export const editWorkplan = z.strictObject({
  ...partial(editable),
  ...idempotency,
  repo: z.optional(z.nullable(name)),
  status: z.optional(z.enum(PLAN_STATUSES)),
});
export const newTask = z.strictObject({
  ...partial(editableTask),
  ...idempotency,
  task_id: z.optional(id),
  title: editable.title,
  repo: name,
  status: z.optional(z.enum(["draft", "ready"])),
});
/** `block` goes with the status `blocked` and with no other. */
export const editTask = z.strictObject({
  ...partial(editableTask),
  ...idempotency,
  status: z.optional(z.enum(TASK_STATUSES)),
  block: z.optional(z.strictObject({ kind: z.enum(BLOCKED_REASONS), note: text(LIMITS.note) })),
});
export const newNote = z.strictObject({
  ...idempotency,
  text: z.string().check(z.minLength(1), z.maxLength(LIMITS.note), prose, unicode),
  requests_review: z.boolean(),
  /** Absent: the repository of the window that it comes from, else what kind of caller that is. */
  author: z.optional(name),
});
export const newMessage = z.strictObject({
  ...idempotency,
  /** As the author of a note. */
  sender: z.optional(name),
  target_repo: name,
  target_agent: z.optional(z.nullable(id)),
  subject: oneLine(LIMITS.title),
  body: text(LIMITS.text),
  requests_action: z.boolean(),
  needs_human: z.optional(z.boolean()),
  required_actions: z.optional(editable.required_actions),
  task_id: z.optional(z.nullable(id)),
});
export const newCheckpoint = z.strictObject({ ...idempotency, ...checkpointFields });
export const emptyBody = z.strictObject({ ...idempotency });

/** One source's latest change; an older one of the same source is no longer in the feed. */
const changeOf = <K extends string, T extends z.ZodMiniType>(kind: K, record: T) =>
  z.object({
    /** Continue after this change. */
    cursor: z.string().check(z.maxLength(128)),
    kind: z.literal(kind),
    source_id: z.string().check(z.maxLength(128)),
    changed_at: time,
    record,
  });
export const change = z.discriminatedUnion("kind", [
  changeOf("workplan", workplan),
  changeOf("task", task),
  changeOf("message", message),
  changeOf("checkpoint", checkpoint),
  changeOf("receipt", receipt),
]);
export const CHANGE_KINDS = ["workplan", "task", "message", "checkpoint", "receipt"] as const;
export type ChangeKind = typeof CHANGE_KINDS[number];

export type Workplan = z.infer<typeof workplan>;
export type Task = z.infer<typeof task>;
export type HubMessage = z.infer<typeof message>;
export type HubCheckpoint = z.infer<typeof checkpoint>;
export type Note = z.infer<typeof note>;
export type Change = z.infer<typeof change>;
export type NewTask = z.infer<typeof newTask>;
export type EditTask = z.infer<typeof editTask>;
export type NewWorkplan = z.infer<typeof newWorkplan>;
export type EditWorkplan = z.infer<typeof editWorkplan>;
export type NewNote = z.infer<typeof newNote>;
export type NewMessage = z.infer<typeof newMessage>;
export type NewCheckpoint = z.infer<typeof newCheckpoint>;
