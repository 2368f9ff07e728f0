/** Which profile a window gets and what that adds to its command (E-05), the same for `start` and broker. */
import type { Env, Settings } from "./config.ts";
import { TamqError } from "./base/errors.ts";
import { windowRule } from "./model/window_policy.ts";
import {
  allProfiles,
  isAgentProfile,
  type Launch,
  launchWith,
  loadUserProfiles,
  profileFor,
  profileNamed,
} from "./pty/profiles/catalog.ts";
import type { Profile } from "./pty/profiles/plain.ts";
import type { AgentProfile } from "./pty/profiles/schema.ts";

export interface LaunchWish {
  readonly command: readonly string[];
  /** Whose window it is; what the configuration says of it comes before the profile's own word. */
  readonly repo?: string;
  /** Name of a profile; by default the command decides. */
  readonly profile?: string;
  /** Nothing is added to the command. */
  readonly bare?: boolean;
}

/** The operator's own profiles lie beside the configuration file. */
export function profileDirectory(settings: Pick<Settings, "configFile">): string {
  return `${settings.configFile.slice(0, settings.configFile.lastIndexOf("/"))}/profiles`;
}

/** Throws `profile_invalid`, `profile_unreadable` and `profile_unknown`. */
export async function launchFor(
  wish: LaunchWish,
  settings: Pick<Settings, "configFile" | "windows">,
  environment: Env,
): Promise<{ profile: Profile | AgentProfile; launch: Launch }> {
  const own = await loadUserProfiles(profileDirectory(settings));
  const known = wish.profile === undefined
    ? await profileFor(wish.command, own)
    : await profileNamed(wish.profile, own);
  const { quiet_seconds } = windowRule(settings.windows, wish.repo, wish.command);
  const profile = quiet_seconds === undefined
    ? known
    : { ...known, operatorQuietMs: quiet_seconds * 1000 };
  const launch = wish.bare
    ? { argv: wish.command, env: {}, added: [] }
    : launchWith(profile, wish.command, environment);
  return { profile, launch };
}

/** A profile as `tamq profile` shows it. */
export interface ProfileEntry {
  readonly name: string;
  /** Base names of the commands that it is for. */
  readonly match: readonly string[];
  /** Path of its file; null: built in. */
  readonly file: string | null;
  readonly text: string;
}

/** In the order in which they are tried. */
export async function profileEntries(settings: Pick<Settings, "configFile">) {
  const found = await allProfiles(profileDirectory(settings));
  return found.map(({ profile, file, text }): ProfileEntry => ({
    name: profile.name,
    match: isAgentProfile(profile) ? profile.match : [],
    file: file ?? null,
    text,
  }));
}

/** Throws `profile_unknown`. */
export async function profileEntry(
  name: string,
  settings: Pick<Settings, "configFile">,
): Promise<ProfileEntry> {
  const entries = await profileEntries(settings);
  const found = entries.find((entry) => entry.name === name);
  if (found !== undefined) return found;
  throw new TamqError("NOT_FOUND", "profile_unknown", `there is no profile "${name}"`, {
    hint: `known profiles: ${[...new Set(entries.map((entry) => entry.name))].join(", ")}`,
  });
}
