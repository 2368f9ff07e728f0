/**
 * The injection gate as `tamq show` tells it (B-08): which steps an attempt passed, at which one it
 * stopped, and how long each may take. Told from the reason alone: a broker stops at the first step
 * that does not hold.
 */
import type { WireAttempt } from "../protocol/schema.ts";
import { reasonWords } from "./attempt_words.ts";

interface Step {
  readonly name: string;
  /** How long it may take, in words. */
  readonly bound: string;
  /** Reasons for stopping there. */
  readonly reasons: readonly string[];
}

const WAITS = "waits; at most delivery.ready_seconds, then 10 s more in the attempt";

/** Of an agent's window, in their order; no lease is taken before the first five hold. */
const STEPS: readonly Step[] = [
  {
    name: "window attached",
    bound: "waits",
    reasons: ["not_attached", "broker_silent", "broker_lost", "broker_degraded", "broker_error"],
  },
  {
    name: "right program at the terminal",
    bound: WAITS,
    reasons: [
      "starting",
      "worker_exited",
      "other_program",
      "foreground_unknown",
      "full_screen_program",
    ],
  },
  { name: "no dialog open", bound: WAITS, reasons: ["dialog_open"] },
  {
    name: "operator's line empty and quiet",
    bound: WAITS,
    reasons: ["operator_typing", "line_not_empty"],
  },
  {
    name: "ready, or able to queue",
    bound: WAITS,
    reasons: ["agent_busy", "screen_unsettled", "paste_mode_off", "agent_unrecognised"],
  },
  {
    name: "text written",
    bound: "2 s; the operator's keys are held for at most 500 ms",
    reasons: ["terminal_not_read", "terminal_gone", "body_binary"],
  },
  {
    name: "text seen in the line",
    bound: "the profile's pause and 2 s",
    reasons: ["not_shown", "operator_interrupt", "operator_typed_behind"],
  },
  {
    name: "still no dialog, same program",
    bound: "500 ms",
    reasons: ["dialog_opened", "foreground_changed"],
  },
  {
    name: "submission seen",
    bound: "1.5 s, and once more after a second Enter",
    reasons: ["not_submitted", "unconfirmed"],
  },
];

/** Steps that an agent's window alone has. */
const FIRST_AGENT_STEP = 5;

/** A line for an attempt; undefined where its reason says all: shells and programs that read lines. */
export function attemptSteps({ outcome, reason }: WireAttempt): string | undefined {
  if (reason === null) return undefined;
  if (outcome === "written" && reason.startsWith("confirmed: ")) {
    return passed(STEPS.length);
  }
  const at = stepOf(reason);
  return at === undefined ? undefined : told(at, reason);
}

/** The same for a message that waits. */
export function waitingSteps(reason: string | null): string | undefined {
  const gate = reason === null ? undefined : /^gate: (.*)$/.exec(reason)?.[1] ?? reason;
  const at = gate === undefined ? undefined : stepOf(gate);
  return at === undefined || at >= FIRST_AGENT_STEP ? undefined : told(at, gate!);
}

function stepOf(reason: string): number | undefined {
  const key = reason.split(":")[0]!;
  const at = STEPS.findIndex(({ reasons }) => reasons.includes(key));
  return at < 0 ? undefined : at;
}

function passed(count: number): string {
  return STEPS.slice(0, count).map(({ name }) => `✓ ${name}`).join("  ");
}

function told(at: number, reason: string): string {
  const { name, bound } = STEPS[at]!;
  const stopped = `✗ ${name}: ${reasonWords(reason)} (${bound})`;
  const rest = STEPS.slice(at + 1).map((step) => `· ${step.name}`);
  return [...at > 0 ? [passed(at)] : [], stopped, ...rest].join("  ");
}

/** Every reason that has a step, for the test that compares them with the words. */
export const STEP_REASONS = STEPS.flatMap(({ reasons }) => reasons);
