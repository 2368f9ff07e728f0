/** Protocol versions and capabilities (T-04, E-03, V-04); versioned apart from the package. */
import { TamqError } from "../base/errors.ts";

export const PROTOCOL = "0.1";

/** What this service can do; a client stops before it sends when one it needs is missing (T-04). */
export const CAPABILITIES = ["bounded_delivery_ack_v1", "idempotent_send_v1"] as const;

export interface Version {
  readonly major: number;
  readonly minor: number;
}

export function parseVersion(text: unknown): Version | undefined {
  if (typeof text !== "string") return undefined;
  const match = /^(\d{1,6})\.(\d{1,6})$/.exec(text);
  return match ? { major: Number(match[1]), minor: Number(match[2]) } : undefined;
}

const OURS = parseVersion(PROTOCOL)!;

/**
 * Accepts every minor version of our major one; throws `protocol_mismatch` otherwise.
 * `newerMinor` tells that unknown fields are to be ignored rather than refused (T-06).
 */
export function negotiate(theirs: unknown): { newerMinor: boolean } {
  const version = parseVersion(theirs);
  if (version === undefined) {
    throw new TamqError(
      "INVALID_ARGUMENT",
      "protocol_invalid",
      `"protocol" must be a version like "${PROTOCOL}"`,
    );
  }
  if (version.major !== OURS.major) {
    throw new TamqError(
      "FAILED_PRECONDITION",
      "protocol_mismatch",
      `protocol ${version.major}.${version.minor} is not compatible with ${PROTOCOL}`,
      { hint: "use the tamq executable of the running service, or restart the service" },
    );
  }
  return { newerMinor: version.minor > OURS.minor };
}

/** Throws when the service that answered a ping cannot be trusted with a message (T-04). */
export function requireService(
  ping: { protocol: string; capabilities: readonly string[] },
  required: readonly string[] = CAPABILITIES,
): void {
  negotiate(ping.protocol);
  const missing = required.filter((name) => !ping.capabilities.includes(name));
  if (missing.length > 0) {
    throw new TamqError(
      "FAILED_PRECONDITION",
      "capability_missing",
      `the service lacks ${missing.join(", ")}`,
      { hint: "update tamq and restart the service: tamq stop; tamq serve --detach" },
    );
  }
}
