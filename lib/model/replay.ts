/** A line of an exported file, as a replay reads it. */
import { ok, type Outcome, refused } from "../base/outcome.ts";
import { checkBody, MAX_METADATA_BYTES } from "./body.ts";

/** Stands on every exported line. Fields may be added under this name; none changes its meaning. */
export const EXPORT_FORMAT = "tamq-message-1";

/** What a replay keeps of a line; everything else on it tells of the past. */
export interface ReplayEntry {
  readonly original_message_id?: string;
  readonly correlation_id?: string;
  readonly sender_repo: string;
  readonly target_repo: string;
  readonly metadata?: Record<string, unknown>;
  readonly body: string;
}

export interface BadLine {
  readonly reason: string;
  readonly message: string;
}

/** The entry of a line, or what is wrong with it. Fields that a replay does not use may be absent. */
export function parseReplayLine(line: string): Outcome<ReplayEntry, BadLine> {
  let value: Record<string, unknown>;
  try {
    value = JSON.parse(line);
  } catch {
    return bad("line_not_json", "not a line of JSON");
  }
  if (!isObject(value)) return bad("line_not_object", "not a JSON object");
  const { format = EXPORT_FORMAT, message_id, correlation_id, metadata = {}, body } = value;
  if (format !== EXPORT_FORMAT) {
    return bad("format_unknown", `the format is not "${EXPORT_FORMAT}"`);
  }
  for (const field of ["sender_repo", "target_repo"]) {
    if (!isName(value[field])) return bad("field_invalid", complaint(field, value[field]));
  }
  for (const [field, id] of Object.entries({ message_id, correlation_id })) {
    if (!absent(id) && !isName(id)) return bad("field_invalid", complaint(field, id));
  }
  if (!isObject(metadata)) return bad("field_invalid", `"metadata" is not an object`);
  if (new TextEncoder().encode(JSON.stringify(metadata)).length > MAX_METADATA_BYTES) {
    return bad("metadata_too_large", `"metadata" has more than ${MAX_METADATA_BYTES} bytes`);
  }
  if (typeof body !== "string") return bad("field_invalid", complaint("body", body));
  const checked = checkBody(body);
  if (!checked.ok) return bad(checked.error.reason, checked.error.message);
  return ok({
    ...(absent(message_id) ? {} : { original_message_id: message_id as string }),
    ...(absent(correlation_id) ? {} : { correlation_id: correlation_id as string }),
    sender_repo: value.sender_repo as string,
    target_repo: value.target_repo as string,
    metadata,
    body,
  });
}

function bad(reason: string, message: string): Outcome<ReplayEntry, BadLine> {
  return refused({ reason, message });
}

const absent = (value: unknown) => value === undefined || value === null;

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** One line of bounded length, as the service demands of ids and names. */
function isName(value: unknown): boolean {
  if (typeof value !== "string" || value.length === 0 || value.length > 256) return false;
  // deno-lint-ignore no-control-regex
  return !/[\u0000-\u001f\u007f]/.test(value);
}

function complaint(field: string, value: unknown): string {
  if (absent(value)) return `"${field}" is missing`;
  if (typeof value !== "string") return `"${field}" is not a string`;
  return `"${field}" is empty, too long or holds control characters`;
}
