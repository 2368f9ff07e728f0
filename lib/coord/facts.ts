/** What registry and transport vouch for, as the gates look at it (K-04, K-09). */
import type { ProcessIdentity } from "../base/proc.ts";
import type { Registry } from "../model/ports.ts";
import type { WireAttachment, WireEndpoint } from "../protocol/schema.ts";
import type { Target } from "./gates.ts";

/** One live window of a repository. */
export interface LiveWindow {
  readonly endpoint: WireEndpoint;
  readonly attachment: WireAttachment;
}

/** Windows of that repository in which that agent runs; any agent when none is named. */
export function windowsOf(
  endpoints: readonly WireEndpoint[],
  repo: string,
  agent: string | null,
): LiveWindow[] {
  return endpoints.flatMap((endpoint) =>
    endpoint.attachments.filter((attachment) =>
      attachment.repo === repo && (agent === null || programOf(attachment) === agent)
    ).map((attachment) => ({ endpoint, attachment }))
  );
}

function programOf({ command }: WireAttachment): string {
  return (command[0] ?? "").split("/").at(-1)!;
}

/** Throws `registry_unavailable`: without the registry nobody is addressed. */
export function targetOf(
  repo: string,
  windows: readonly LiveWindow[],
  registry: Registry,
  identify: (pid: number) => ProcessIdentity | undefined,
): Target {
  const found = registry.find(repo);
  const registration = found === "unknown"
    ? "unregistered"
    : found === "ambiguous"
    ? "ambiguous"
    : "registered";
  if (windows.length === 0) return { registration, session: "absent", identity: "unknown" };
  if (windows.length > 1) return { registration, session: "several", identity: "unknown" };
  const { attachment } = windows[0]!;
  // The service has proved the broker at its attach; it must still be there.
  const session = identify(attachment.broker_pid) === undefined ? "absent" : "authenticated";
  const identity = typeof found === "string"
    ? "unknown"
    : attachment.path === found.path
    ? "matches"
    : "mismatch";
  return { registration, session, identity };
}

/** Reasons of a closed gate that mean: the agent is at it. Its lease is renewed for it (K-07). */
const AT_WORK = ["agent_busy", "dialog_open"];

export function isAtWork({ gate }: WireAttachment): boolean {
  return !gate.open && AT_WORK.includes(gate.reason ?? "");
}
