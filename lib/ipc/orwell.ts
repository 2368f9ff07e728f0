/**
 * `--orwell` (C-06): an unsafe mode for diagnosis that writes down what logs leave out. The practice
 * is `practice-pattern/orwell-logging-diagnostics` of info-tech-canon.
 */
import { type Clock, rfc3339 } from "../base/clock.ts";
import { TamqError } from "../base/errors.ts";
import { openLogFile } from "../base/log_file.ts";
import type { PolicyProfile } from "../model/policy.ts";
import { filesystemOf, isNetwork } from "./filesystem.ts";

/** Where it goes, beside the log of the same service. */
export function orwellSink(stateDir: string): string {
  return `${stateDir}/orwell.log`;
}

/** Takes whatever passes by; never throws. */
export interface Orwell {
  see(event: string, data: Readonly<Record<string, unknown>>): void;
}

/** Throws `orwell_refused` unless the profile allows it and the sink is local. */
export function admitOrwell(profile: PolicyProfile, sink: string): void {
  if (!profile.allowOrwell) {
    throw new TamqError(
      "PERMISSION_DENIED",
      "orwell_refused",
      `--orwell is refused by the policy profile "${profile.name}"`,
      {
        hint: "only a profile with allow_orwell = true admits it, on a machine that is not in " +
          "production: TAMQ_POLICY_PROFILE, tamq help config",
      },
    );
  }
  // Also where such a state directory is allowed at the operator's own risk.
  const mount = filesystemOf(sink.replace(/\/[^/]*$/, ""));
  if (mount !== undefined && isNetwork(mount.type)) {
    throw new TamqError(
      "PERMISSION_DENIED",
      "orwell_refused",
      `--orwell writes to a local file only, and ${sink} lies on a network filesystem`,
      { hint: "set TAMQ_STATE_DIR to a directory on a local disk" },
    );
  }
}

/**
 * The sink of one service: JSON, one object a line, 0600, bounded like a log. Throws as
 * {@link admitOrwell}, and `file_unusable` for what is no file of ours.
 */
export function openOrwell(
  profile: PolicyProfile,
  sink: string,
  clock: Pick<Clock, "now">,
): Orwell & Disposable {
  admitOrwell(profile, sink);
  const file = openLogFile(sink);
  // It may be an older one that somebody opened to others.
  Deno.chmodSync(sink, 0o600);
  return {
    see(event, data) {
      file.write(JSON.stringify({ time: rfc3339(clock.now()), event, ...data }) + "\n");
    },
    [Symbol.dispose]: () => file.close(),
  };
}
