/** Policy profiles: which classes of action a woken worker may take without a person (K-13). */
import { TamqError } from "../base/errors.ts";
import { nearest } from "./nearest.ts";

/** What the `default` profile allows. */
export const DEFAULT_ALLOW = [
  "statehub_read",
  "repo_inspect",
  "repo_edit",
  "local_checks",
  "state_updates",
  "coordination_messages",
  "tmux_wake",
  "transient_retry",
] as const;

/** What the `default` profile leaves to a person. */
export const DEFAULT_REQUIRE_HUMAN = [
  "secrets",
  "destructive",
  "live_external",
  "scope_change",
  "ambiguous_ownership",
  "external_publish",
  "financial",
  "legal",
] as const;

/** A class of action; profiles may name classes of their own. */
export type ActionClass = string;
export const ACTION_CLASS = /^[a-z][a-z0-9_]{0,63}$/;

export interface PolicyProfile {
  readonly name: string;
  /** Derived from the content: a changed profile never carries the version of the old one. */
  readonly version: string;
  readonly allow: readonly ActionClass[];
  readonly requireHuman: readonly ActionClass[];
  /** How often a gated trigger may be looked at again by itself, 0 to 9; never opens a gate (K-05). */
  readonly safetyGatedMaxAttempts: number;
  /** Whether `--orwell` is admitted under this profile (C-06). */
  readonly allowOrwell: boolean;
}

/** A profile as the configuration file writes it. */
export interface ProfileSettings {
  readonly allow: readonly string[];
  readonly require_human: readonly string[];
  readonly safety_gated_max_attempts?: number;
  readonly allow_orwell?: boolean;
}

const MAX_CLASSES = 64;
export const MAX_GATED_ATTEMPTS = 9;

function invalid(name: string, why: string, hint: string): TamqError {
  return new TamqError("INVALID_ARGUMENT", "policy_invalid", `policy profile "${name}": ${why}`, {
    hint,
  });
}

/** Checks one profile; throws `policy_invalid` with the profile, the fault and the way out. */
export function makeProfile(name: string, settings: ProfileSettings): PolicyProfile {
  if (!/^[a-z][a-z0-9_-]{0,63}$/.test(name)) {
    throw invalid(name, "the name is not allowed", "use lower-case letters, digits, - and _");
  }
  const allow = checkClasses(name, "allow", settings.allow);
  const requireHuman = checkClasses(name, "require_human", settings.require_human);
  const both = allow.find((action) => requireHuman.includes(action));
  if (both !== undefined) {
    throw invalid(
      name,
      `"${both}" is both allowed and left to a person`,
      "name each class in one of allow and require_human",
    );
  }
  const attempts = settings.safety_gated_max_attempts ?? 0;
  if (!Number.isInteger(attempts) || attempts < 0 || attempts > MAX_GATED_ATTEMPTS) {
    throw invalid(
      name,
      `safety_gated_max_attempts is ${attempts}`,
      `give a whole number from 0 to ${MAX_GATED_ATTEMPTS}`,
    );
  }
  const content = {
    allow,
    requireHuman,
    safetyGatedMaxAttempts: attempts,
    allowOrwell: settings.allow_orwell === true,
  };
  return Object.freeze({ name, version: contentVersion(content), ...content });
}

function checkClasses(name: string, key: string, classes: readonly string[]): readonly string[] {
  if (classes.length > MAX_CLASSES) {
    throw invalid(name, `${key} has over ${MAX_CLASSES} entries`, "name fewer classes");
  }
  const wrong = classes.find((action) => !ACTION_CLASS.test(action));
  if (wrong !== undefined) {
    throw invalid(
      name,
      `${key} holds "${wrong}"`,
      "a class is lower-case letters, digits and _, beginning with a letter",
    );
  }
  const twice = classes.find((action, i) => classes.indexOf(action) !== i);
  if (twice !== undefined) {
    throw invalid(name, `${key} names "${twice}" twice`, "name each class once");
  }
  return Object.freeze([...classes]);
}

/** FNV-1a, 64 bits: tells states of a configuration apart; it protects nothing. */
export function contentVersion(content: unknown): string {
  let hash = 0xcbf29ce484222325n;
  for (const byte of new TextEncoder().encode(JSON.stringify(content))) {
    hash = BigInt.asUintN(64, (hash ^ BigInt(byte)) * 0x100000001b3n);
  }
  return hash.toString(16).padStart(16, "0");
}

/** The conservative profile, exactly as the contract gives it. */
export const DEFAULT_PROFILE: PolicyProfile = makeProfile("default", {
  allow: DEFAULT_ALLOW,
  require_human: DEFAULT_REQUIRE_HUMAN,
  safety_gated_max_attempts: 0,
});

/**
 * Validates every configured profile and returns the selected one. `default` is built in and cannot
 * be replaced. Throws `policy_invalid` or `policy_unknown`.
 */
export function selectProfile(
  selected: string,
  configured: Readonly<Record<string, ProfileSettings>> = {},
): PolicyProfile {
  const profiles = new Map<string, PolicyProfile>([["default", DEFAULT_PROFILE]]);
  for (const [name, settings] of Object.entries(configured)) {
    const profile = makeProfile(name, settings);
    if (name === "default" && profile.version !== DEFAULT_PROFILE.version) {
      throw invalid(name, "it is built in and cannot be changed", "give yours another name");
    }
    profiles.set(name, profile);
  }
  const profile = profiles.get(selected);
  if (profile !== undefined) return profile;
  const near = nearest(selected, profiles.keys(), 1)[0];
  throw new TamqError(
    "INVALID_ARGUMENT",
    "policy_unknown",
    `there is no policy profile "${selected}"`,
    { hint: `known: ${[...profiles.keys()].join(", ")}${near ? `; did you mean "${near}"?` : ""}` },
  );
}
