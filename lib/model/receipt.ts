/**
 * Receipts: what happened, to what, when and why (K-14). Sanitised by construction: every field is
 * an identifier, a word of a fixed form, a number or a time. There is none that a prompt, a body, a
 * credential or terminal output could be written into.
 */
import { TamqError } from "../base/errors.ts";
import { TRIGGER_SOURCES, type TriggerSource } from "./trigger.ts";

export const RECEIPT_KINDS = [
  "trigger",
  "gate",
  "approval",
  "lease",
  "wake",
  "checkpoint",
  "retry",
  "stop",
  "completion",
  "progress",
  "configuration",
  "shutdown",
] as const;
export type ReceiptKind = typeof RECEIPT_KINDS[number];

/** The forms that a field of a receipt may have; the schemas of the wire are built from them. */
export const RECEIPT_FORMS = Object.freeze({
  /** No white space: sentences and terminal output have no place in an identifier. */
  id: /^[\x21-\x7e]{1,128}$/,
  word: /^[a-z][a-z0-9_]{0,63}$/,
  /** A registered repository's name; gita allows spaces in it. */
  // deno-lint-ignore no-control-regex
  repo: /^[^\u0000-\u001f\u007f-\u009f]{1,256}$/,
  time: /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/,
});

/** Which form each field has. */
export const RECEIPT_FIELDS = {
  receipt_id: "id",
  /** Publishing twice with the same key leaves one receipt (K-15). */
  idempotency_key: "id",
  kind: "kind",
  /** The state now, e.g. `offered` or `gated`. */
  status: "word",
  reason: "word?",
  trigger_id: "id?",
  source: "source?",
  source_id: "id?",
  source_revision: "id?",
  target_repo: "repo?",
  target_agent: "id?",
  lease_id: "id?",
  attempt: "count?",
  max_attempts: "count?",
  next_attempt_at: "time?",
  expires_at: "time?",
  /** With `local_message_id`, the identity of the message that woke the worker (K-09). */
  coordination_endpoint_id: "id?",
  local_message_id: "id?",
  local_lease_id: "id?",
  checkpoint_id: "id?",
  approval_id: "id?",
  gate: "word?",
  action_class: "word?",
  policy_profile: "id?",
  policy_version: "id?",
  config_version: "id?",
  protocol_version: "id?",
  recorded_at: "time",
} as const;

export type ReceiptField = keyof typeof RECEIPT_FIELDS;
type Form = typeof RECEIPT_FIELDS[ReceiptField];
type ValueOf<F extends Form> = F extends "kind" ? ReceiptKind
  : F extends "source?" ? TriggerSource
  : F extends "count?" ? number
  : string;
type Required = {
  [K in ReceiptField as typeof RECEIPT_FIELDS[K] extends `${string}?` ? never : K]: ValueOf<
    typeof RECEIPT_FIELDS[K]
  >;
};
type Optional = {
  [K in ReceiptField as typeof RECEIPT_FIELDS[K] extends `${string}?` ? K : never]?: ValueOf<
    typeof RECEIPT_FIELDS[K]
  >;
};
export type Receipt = Readonly<Required & Optional>;

function fits(form: string, value: unknown): boolean {
  switch (form) {
    case "kind":
      return (RECEIPT_KINDS as readonly unknown[]).includes(value);
    case "source":
      return (TRIGGER_SOURCES as readonly unknown[]).includes(value);
    case "count":
      return typeof value === "number" && Number.isSafeInteger(value) && value >= 0;
    default:
      return typeof value === "string" &&
        RECEIPT_FORMS[form as keyof typeof RECEIPT_FORMS].test(value);
  }
}

/**
 * The receipt with exactly its own fields; absent and null ones left out. Throws `receipt_invalid`,
 * which names the field and never its content.
 */
export function makeReceipt(input: Readonly<Record<string, unknown>>): Receipt {
  const receipt: Record<string, unknown> = {};
  for (const [field, declared] of Object.entries(RECEIPT_FIELDS)) {
    const value = Object.hasOwn(input, field) ? input[field] : undefined;
    const optional = declared.endsWith("?");
    if (value === undefined || value === null) {
      if (optional) continue;
      throw invalid(field, "is missing");
    }
    if (!fits(optional ? declared.slice(0, -1) : declared, value)) {
      throw invalid(field, "has a form that receipts do not carry");
    }
    receipt[field] = value;
  }
  for (const field of Object.keys(input)) {
    // The name of a field may itself be somebody's text.
    if (!Object.hasOwn(RECEIPT_FIELDS, field)) throw invalid("one more field", "is not known");
  }
  return Object.freeze(receipt) as Receipt;
}

function invalid(field: string, why: string): TamqError {
  return new TamqError("INVALID_ARGUMENT", "receipt_invalid", `receipt: ${field} ${why}`, {
    hint: "receipts carry identifiers, states, reasons and times only",
  });
}
