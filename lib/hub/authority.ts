/**
 * Who may change what (K-04, K-19, T-27). A worker reports on its own repository's work and asks for
 * more; what holds work back is let go by a person alone. Pure but for what it throws.
 */
import { TamqError } from "../base/errors.ts";
import type { BlockedReason } from "../model/checkpoint.ts";
import type { BodyOf } from "./api.ts";
import type { PlanStatus, TaskStatus } from "./rules.ts";
import type { HubMessage, Note, Task, Workplan } from "./schema.ts";

/** Who asks: known by the connection, never by what the request says. */
export type Caller =
  /** A process of this user outside the windows that tamq opened. */
  | { readonly kind: "operator" }
  /** A process in a worker's window. */
  | { readonly kind: "window"; readonly repo: string }
  /** Whoever holds the token, over TCP: it may be a worker, so it is no person. */
  | { readonly kind: "token" };

/** What a checkpoint or a block says of these is for a person to answer (K-11). */
const GATING: readonly BlockedReason[] = ["human", "secret", "destructive", "policy"];
const OPEN: readonly (TaskStatus | PlanStatus)[] = ["ready", "active"];

/** Throws `operator_only`, `worker_refused`, `other_repository`. */
export function mayEditTask(caller: Caller, before: Task, edit: BodyOf<"editTask">): void {
  if (caller.kind === "operator") return;
  requireOwn(caller, `task "${before.task_id}"`, before.repo);
  keepGates(caller, before, edit);
  const { block, status = before.status } = edit;
  if (before.block !== null && GATING.includes(before.block.kind)) {
    const kept = status === "blocked" && (block === undefined || block.kind === before.block.kind);
    // Its worker may finish what a person approved in the engine.
    if (!kept && status !== "done" && status !== "cancelled") {
      throw refused(caller, `lift the block "${before.block.kind}"`);
    }
  }
  if (moves(before.repo, edit.repo)) throw refused(caller, "move a task to another repository");
  if (moves(before.agent, edit.agent)) throw refused(caller, "give a task to another agent");
  if (moves(before.workplan?.workplan_id ?? null, edit.workplan_id)) {
    throw refused(caller, "move a task out of its workplan, or into one");
  }
  const { dependencies } = edit;
  if (dependencies && before.dependencies.some((id) => !dependencies.includes(id))) {
    throw refused(caller, "drop a dependency");
  }
}

/** Throws as {@link mayEditTask}. */
export function mayEditPlan(caller: Caller, before: Workplan, edit: BodyOf<"editWorkplan">): void {
  if (caller.kind === "operator") return;
  requireOwn(caller, `workplan "${before.workplan_id}"`, before.repo);
  keepGates(caller, before, edit);
  if (edit.status && OPEN.includes(edit.status) && !OPEN.includes(before.status)) {
    throw refused(caller, `let the tasks of a workplan go that is ${before.status}`);
  }
  if (moves(before.repo, edit.repo)) throw refused(caller, "move a workplan");
  if (moves(before.agent, edit.agent)) throw refused(caller, "give a workplan to another agent");
}

/** Anybody may leave a remark; one that stops work stops the own repository's alone. */
export function mayNote(
  caller: Caller,
  what: string,
  repo: string | null,
  note: BodyOf<"addTaskNote">,
): void {
  if (note.requests_review) requireOwn(caller, what, repo);
  requireOwnName(caller, note.author);
}

/** Throws as {@link mayEditTask}. */
export function mayResolve(
  caller: Caller,
  what: string,
  record: { readonly repo: string | null; readonly notes: readonly Note[] },
  noteId: string,
): void {
  if (caller.kind === "operator") return;
  requireOwn(caller, what, record.repo);
  const note = record.notes.find(({ note_id }) => note_id === noteId);
  if (note?.requests_review) throw refused(caller, "say that a review was made");
}

/** A window's message bears the name of its repository. */
export function maySend(caller: Caller, message: BodyOf<"createMessage">): void {
  requireOwnName(caller, message.sender);
}

/** Reading somebody else's message for it would keep its worker from being woken. */
export function mayReceive(caller: Caller, message: HubMessage): void {
  requireOwn(caller, `message "${message.message_id}"`, message.target_repo);
}

export function mayCheckpoint(caller: Caller, checkpoint: BodyOf<"createCheckpoint">): void {
  requireOwn(caller, "that checkpoint", checkpoint.repo);
}

/** Receipts are the engine's word. */
export function mayPublish(caller: Caller): void {
  if (caller.kind === "window") throw refused(caller, "publish receipts");
}

/** Under whose name something is kept when the request gives none. */
export function nameOf(caller: Caller): string {
  return caller.kind === "window" ? caller.repo : caller.kind;
}

function moves<T>(before: T, after: T | undefined): boolean {
  return after !== undefined && after !== before;
}

function keepGates(
  caller: Caller,
  before: { readonly needs_human: boolean; readonly required_actions: readonly string[] },
  edit: { readonly needs_human?: boolean; readonly required_actions?: readonly string[] },
): void {
  if (before.needs_human && edit.needs_human === false) {
    throw refused(caller, "say that a person is no longer asked for");
  }
  const { required_actions: actions } = edit;
  if (actions && before.required_actions.some((action) => !actions.includes(action))) {
    throw refused(caller, "drop a class of action that a task or workplan needs");
  }
}

function requireOwn(caller: Caller, what: string, repo: string | null): void {
  if (caller.kind !== "window" || caller.repo === repo) return;
  throw new TamqError(
    "PERMISSION_DENIED",
    "other_repository",
    `${what} is not of ${caller.repo}, the repository of this window`,
    { hint: "ask for it instead: tamq hub message add SUBJECT --to REPO --ask" },
  );
}

function requireOwnName(caller: Caller, name: string | undefined): void {
  if (caller.kind !== "window" || name === undefined || name === caller.repo) return;
  throw new TamqError(
    "PERMISSION_DENIED",
    "sender_refused",
    `what comes from a window of ${caller.repo} bears that name and no other`,
    { hint: "leave the name out" },
  );
}

function refused(caller: Caller, what: string): TamqError {
  if (caller.kind === "token") {
    return new TamqError(
      "PERMISSION_DENIED",
      "operator_only",
      `over TCP nobody may ${what}: who asks there may be a worker`,
      { hint: "run tamq on the hub's machine without STATEHUB_API_BASE" },
    );
  }
  return new TamqError(
    "PERMISSION_DENIED",
    "worker_refused",
    `a command in a worker's window may not ${what}`,
    { hint: "run it in a terminal outside the windows that tamq opened" },
  );
}
