/**
 * What may become of a task, a workplan and a message: total tables, pure. The CHECK constraints of
 * the store say the same words.
 */
import { ok, type Outcome, refused } from "../base/outcome.ts";

export const TASK_STATUSES = ["draft", "ready", "active", "blocked", "done", "cancelled"] as const;
export type TaskStatus = typeof TASK_STATUSES[number];

export const PLAN_STATUSES = ["draft", "ready", "active", "paused", "done", "cancelled"] as const;
export type PlanStatus = typeof PLAN_STATUSES[number];

export const MESSAGE_STATES = ["unread", "read", "acknowledged"] as const;
export type MessageState = typeof MESSAGE_STATES[number];

/** Where each status may go; staying is always allowed. `done` and `cancelled` may be reopened. */
export const TASK_MOVES: Readonly<Record<TaskStatus, readonly TaskStatus[]>> = {
  draft: ["ready", "blocked", "cancelled"],
  ready: ["draft", "active", "blocked", "done", "cancelled"],
  active: ["ready", "blocked", "done", "cancelled"],
  blocked: ["draft", "ready", "active", "done", "cancelled"],
  done: ["ready"],
  cancelled: ["draft", "ready"],
};

export const PLAN_MOVES: Readonly<Record<PlanStatus, readonly PlanStatus[]>> = {
  draft: ["ready", "active", "cancelled"],
  ready: ["draft", "active", "paused", "done", "cancelled"],
  active: ["ready", "paused", "done", "cancelled"],
  paused: ["draft", "ready", "active", "done", "cancelled"],
  done: ["active"],
  cancelled: ["draft"],
};

export interface MoveRefusal {
  readonly reason: "invalid_transition" | "dependencies_unsatisfied";
  readonly from: string;
  readonly to: string;
  readonly allowed: readonly string[];
}

/** `unsatisfied`: how many dependencies are not done. Work on them first (K-03). */
export function moveTask(
  from: TaskStatus,
  to: TaskStatus,
  unsatisfied: number,
): Outcome<TaskStatus, MoveRefusal> {
  const allowed = TASK_MOVES[from];
  if (from !== to && !allowed.includes(to)) {
    return refused({ reason: "invalid_transition", from, to, allowed });
  }
  const needsAll = from !== to && (to === "active" || to === "done");
  if (needsAll && unsatisfied > 0) {
    return refused({ reason: "dependencies_unsatisfied", from, to, allowed });
  }
  return ok(to);
}

export function movePlan(from: PlanStatus, to: PlanStatus): Outcome<PlanStatus, MoveRefusal> {
  const allowed = PLAN_MOVES[from];
  return from === to || allowed.includes(to)
    ? ok(to)
    : refused({ reason: "invalid_transition", from, to, allowed });
}

/** A message only moves forward; asking for less than it has is a repeat and changes nothing. */
export function moveMessage(from: MessageState, to: MessageState): MessageState {
  return MESSAGE_STATES.indexOf(to) > MESSAGE_STATES.indexOf(from) ? to : from;
}

/** Only a done task satisfies a dependency: what was cancelled was not done. */
export function satisfies(status: TaskStatus): boolean {
  return status === "done";
}

/**
 * The path of the cycle that `dependencies` of `task` would close, or undefined. `next` gives the
 * dependencies of any other task. Visits each task once.
 */
export function findCycle(
  task: string,
  dependencies: readonly string[],
  next: (task: string) => readonly string[],
): string[] | undefined {
  const cameFrom = new Map<string, string>();
  const open: string[] = [];
  for (const first of dependencies) {
    if (first === task) return [task, task];
    if (cameFrom.has(first)) continue;
    cameFrom.set(first, task);
    open.push(first);
  }
  for (let at = open.pop(); at !== undefined; at = open.pop()) {
    for (const dependency of next(at)) {
      if (dependency === task) {
        const path = [at];
        for (let back = cameFrom.get(at)!; back !== task; back = cameFrom.get(back)!) {
          path.push(back);
        }
        return [task, ...path.reverse(), task];
      }
      if (cameFrom.has(dependency)) continue;
      cameFrom.set(dependency, at);
      open.push(dependency);
    }
  }
  return undefined;
}
