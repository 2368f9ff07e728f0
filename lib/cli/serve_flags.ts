/** What the three services have in common on the command line (C-05, C-06, L-01). */
import { displaySafe } from "../base/display.ts";
import { TamqError } from "../base/errors.ts";
import type { Level } from "../base/log.ts";
import type { Settings } from "../config.ts";
import { admitOrwell } from "../ipc/orwell.ts";
import { type PolicyProfile, selectProfile } from "../model/policy.ts";
import type { CliContext } from "./context.ts";
import { usageError } from "./errors.ts";

export interface ServiceFlags {
  readonly detach?: boolean;
  readonly quiet?: boolean;
  readonly verbose?: boolean;
  readonly json?: boolean;
  readonly orwell?: boolean;
  readonly detachedChild?: boolean;
}

export function levelOf(flags: ServiceFlags): Level {
  if (flags.quiet && flags.verbose) {
    throw usageError("--quiet and --verbose exclude each other", "give one of them");
  }
  return flags.quiet ? "warn" : flags.verbose ? "debug" : "info";
}

/** The options that a detached child is started with; nothing of them is kept for the next start. */
export function childOptions(flags: ServiceFlags): string[] {
  return (["quiet", "verbose", "json", "orwell"] as const)
    .flatMap((name) => flags[name] ? [`--${name}`] : []);
}

/** The profile that admits `--orwell`, with a loud warning; undefined without the option. */
export function orwellProfile(
  context: CliContext,
  flags: ServiceFlags,
  settings: Settings,
  sink: string,
): PolicyProfile | undefined {
  if (!flags.orwell) return undefined;
  const profile = selectProfile(settings.policyProfile, settings.profiles);
  admitOrwell(profile, sink);
  if (flags.detachedChild) return profile; // who started it has warned
  context.err("tamq: WARNING: --orwell: MESSAGE BODIES AND CREDENTIALS ARE WRITTEN DOWN IN CLEAR");
  context.err(displaySafe(`tamq: WARNING: into ${sink}`));
  context.err(
    displaySafe(`tamq: WARNING: unsafe, for diagnosis only; delete it afterwards: rm ${sink}*`),
  );
  return profile;
}

/** One that runs already was not asked to: never pretend that it does. */
export function refuseUnless(started: boolean, flags: ServiceFlags, stop: string): void {
  if (started || !flags.orwell) return;
  throw new TamqError(
    "FAILED_PRECONDITION",
    "orwell_not_started",
    "it runs already, without --orwell",
    { hint: `end it first: ${stop}` },
  );
}
