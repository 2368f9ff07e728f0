/** A decoded request checked against the operation table, and frames of a delivery stream (T-06, T-22). */
import type * as z from "zod/mini";
import { displaySafe } from "../base/display.ts";
import { TamqError } from "../base/errors.ts";
import { nearest } from "../model/nearest.ts";
import { negotiate } from "./handshake.ts";
import { isOperation, type OperationName, operations, type RequestOf } from "./operations.ts";
import { type BrokerFrame, brokerFrame } from "./schema.ts";

type Json = Record<string, unknown>;

/** One request, checked; `fields` are those of `op`. */
export type Request = {
  [K in OperationName]: { op: K; fields: RequestOf<K>; newerMinor: boolean; protocol: string };
}[OperationName];

/**
 * Throws `protocol_invalid`, `protocol_mismatch`, `unknown_op`, `field_missing`, `field_invalid` or
 * `unknown_field`; the field is named, its value never. Unknown fields are dropped when the
 * client's minor version is newer than ours.
 */
export function parseRequest(json: Json): Request {
  const { op, protocol, ...fields } = json;
  const { newerMinor } = negotiate(protocol);
  if (!isOperation(op)) {
    const name = typeof op === "string" ? `"${shorten(op)}"` : "missing";
    const like = typeof op === "string" ? nearest(op.slice(0, 40), Object.keys(operations), 1) : [];
    throw new TamqError("INVALID_ARGUMENT", "unknown_op", `the operation is unknown: ${name}`, {
      hint: like.length > 0
        ? `did you mean "${like[0]}"?`
        : `"op" is one of ${Object.keys(operations).join(", ")}`,
    });
  }
  const checked = check(operations[op].request, fields, newerMinor);
  return { op, fields: checked, newerMinor, protocol } as Request;
}

/** One line of a broker; undefined for a type that only a newer minor version knows. */
export function parseBrokerFrame(json: Json, newerMinor: boolean): BrokerFrame | undefined {
  const known = brokerFrame.def.options.some((one) => one.shape.type.def.values[0] === json.type);
  if (newerMinor && !known) return undefined;
  return check(brokerFrame, json, newerMinor) as BrokerFrame;
}

/** No shape of ours is nested deeper; each pass drops unknown fields one level down. */
const MAX_DEPTH = 8;

function check(schema: z.ZodMiniType, value: Json, newerMinor: boolean): unknown {
  let input = value;
  for (let pass = 0;; pass++) {
    const result = schema.safeParse(input);
    if (result.success) return result.data;
    const unknown = result.error.issues.filter((issue) => issue.code === "unrecognized_keys");
    if (!newerMinor || unknown.length === 0 || pass > MAX_DEPTH) {
      throw complaint(result.error.issues, input);
    }
    input = structuredClone(input);
    for (const issue of unknown) {
      const owner = at(input, issue.path) as Json;
      for (const key of issue.keys) delete owner[key];
    }
  }
}

function complaint(issues: readonly z.core.$ZodIssue[], input: unknown): TamqError {
  // An unknown field first: a mistyped name also leaves the right one missing.
  const issue = issues.find((one) => one.code === "unrecognized_keys") ?? issues[0]!;
  if (issue.code === "unrecognized_keys") {
    const name = fieldName([...issue.path, issue.keys[0]!]);
    return new TamqError("INVALID_ARGUMENT", "unknown_field", `unknown field "${name}"`, {
      hint: "check its spelling against docs/protocol.md",
    });
  }
  const name = fieldName(issue.path);
  if (at(input, issue.path) === undefined) {
    return new TamqError("INVALID_ARGUMENT", "field_missing", `the field "${name}" is required`);
  }
  return new TamqError(
    "INVALID_ARGUMENT",
    "field_invalid",
    `the field "${name}": ${issue.message}`,
  );
}

function at(value: unknown, path: readonly PropertyKey[]): unknown {
  let here = value;
  for (const key of path) here = (here as Record<PropertyKey, unknown> | undefined)?.[key];
  return here;
}

function fieldName(path: readonly PropertyKey[]): string {
  return shorten(path.map(String).join("."));
}

function shorten(text: string): string {
  return displaySafe(text.length > 80 ? text.slice(0, 80).toWellFormed() + "…" : text);
}
