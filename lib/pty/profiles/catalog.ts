/**
 * Which profile a command gets: the operator's own ones first, then the built-in ones, else `plain`.
 * The texts are parsed only when a command needs one: a plain command loads no parser.
 */
import { errorText, TamqError } from "../../base/errors.ts";
import { commandName } from "../../model/command_name.ts";
import { plain, type Profile } from "./plain.ts";
import type { AgentProfile } from "./schema.ts";

interface BuiltIn {
  /** As in the text; stated here so that looking up a command parses nothing. A test compares. */
  readonly match: readonly string[];
  readonly text: () => Promise<string>;
}

const BUILT_IN: Readonly<Record<string, BuiltIn>> = {
  codex: { match: ["codex"], text: async () => (await import("./codex.ts")).CODEX },
  claude: { match: ["claude"], text: async () => (await import("./claude.ts")).CLAUDE },
  gemini: { match: ["gemini"], text: async () => (await import("./gemini.ts")).GEMINI },
  opencode: { match: ["opencode"], text: async () => (await import("./opencode.ts")).OPENCODE },
};

const MAX_FILE_BYTES = 64 * 1024;

export const PROFILE_NAMES: readonly string[] = [...Object.keys(BUILT_IN), plain.name];

export function isAgentProfile(profile: Profile): profile is AgentProfile {
  return (profile as Partial<AgentProfile>).kind === "agent";
}

/** The built-in profile of that name, or undefined. */
export async function builtInProfile(name: string): Promise<AgentProfile | undefined> {
  const found = Object.hasOwn(BUILT_IN, name) ? BUILT_IN[name] : undefined;
  if (found === undefined) return undefined;
  const { parseProfile } = await import("./schema.ts");
  return parseProfile(await found.text(), `built-in profile ${name}`);
}

/** The profile for a command line; `plain` when nobody claims it. */
export async function profileFor(
  argv: readonly string[],
  userProfiles: readonly AgentProfile[] = [],
): Promise<Profile | AgentProfile> {
  const name = commandName(argv);
  const own = userProfiles.find((profile) => profile.match.includes(name));
  if (own !== undefined) return own;
  for (const [key, { match }] of Object.entries(BUILT_IN)) {
    if (match.includes(name)) return (await builtInProfile(key))!;
  }
  return plain;
}

/** A profile by its own name, for `--profile`; throws `profile_unknown`. */
export async function profileNamed(
  name: string,
  userProfiles: readonly AgentProfile[] = [],
): Promise<Profile | AgentProfile> {
  const own = userProfiles.find((profile) => profile.name === name);
  const found = own ?? (name === plain.name ? plain : await builtInProfile(name));
  if (found !== undefined) return found;
  const names = [...userProfiles.map((profile) => profile.name), ...PROFILE_NAMES];
  throw new TamqError("NOT_FOUND", "profile_unknown", `there is no profile "${name}"`, {
    hint: `known profiles: ${[...new Set(names)].join(", ")}`,
  });
}

export interface ProfileSource {
  readonly profile: Profile | AgentProfile;
  /** Path of its file; undefined: built in. */
  readonly file: string | undefined;
  /** Its text; empty for `plain`, which has none. */
  readonly text: string;
}

/** The operator's profiles, then the built-in ones; the first that fits a command is used. */
export async function allProfiles(directory: string): Promise<ProfileSource[]> {
  const found: ProfileSource[] = await userProfiles(directory);
  for (const [name, { text }] of Object.entries(BUILT_IN)) {
    found.push({ profile: (await builtInProfile(name))!, file: undefined, text: await text() });
  }
  return [...found, { profile: plain, file: undefined, text: "" }];
}

/**
 * Reads `*.toml` of the operator's profile directory, in order of name; none when it is missing.
 * Throws `profile_invalid` (file and key) and `profile_unreadable`.
 */
export async function loadUserProfiles(directory: string): Promise<AgentProfile[]> {
  return (await userProfiles(directory)).map(({ profile }) => profile);
}

async function userProfiles(
  directory: string,
): Promise<(ProfileSource & { profile: AgentProfile })[]> {
  let files: string[];
  try {
    files = [...Deno.readDirSync(directory)].map((entry) => entry.name)
      .filter((name) => name.endsWith(".toml")).sort();
  } catch (cause) {
    if (cause instanceof Deno.errors.NotFound) return [];
    throw unreadable(directory, cause);
  }
  if (files.length === 0) return [];
  const { parseProfile } = await import("./schema.ts");
  const profiles: (ProfileSource & { profile: AgentProfile })[] = [];
  const claimed = new Map<string, string>();
  for (const name of files) {
    const file = `${directory}/${name}`;
    const text = readBounded(file);
    const profile = parseProfile(text, file);
    if (profile.name === plain.name) throw invalid(file, `name: "${plain.name}" is reserved`);
    for (const claim of [`name ${profile.name}`, ...profile.match.map((word) => `match ${word}`)]) {
      const other = claimed.get(claim);
      if (other !== undefined) {
        const [key, word] = claim.split(" ");
        throw invalid(file, `${key}: "${word}" is claimed by ${other} already`);
      }
      claimed.set(claim, file);
    }
    profiles.push({ profile, file, text });
  }
  return profiles;
}

function readBounded(file: string): string {
  try {
    const { size } = Deno.statSync(file);
    if (size > MAX_FILE_BYTES) throw invalid(file, `larger than ${MAX_FILE_BYTES} bytes`);
    return Deno.readTextFileSync(file);
  } catch (cause) {
    throw cause instanceof TamqError ? cause : unreadable(file, cause);
  }
}

function unreadable(path: string, cause: unknown): TamqError {
  return new TamqError(
    "INVALID_ARGUMENT",
    "profile_unreadable",
    `cannot read ${path}: ${errorText(cause)}`,
    { cause, hint: "check its permissions" },
  );
}

function invalid(file: string, message: string): TamqError {
  return new TamqError("INVALID_ARGUMENT", "profile_invalid", `${file}: ${message}`);
}

export interface Launch {
  readonly argv: readonly string[];
  /** Set in addition to the worker's environment, each unless the operator set it. */
  readonly env: Readonly<Record<string, string>>;
  /** What was added, for the operator: flags and `NAME=value` words. */
  readonly added: readonly string[];
}

/**
 * The command line as the profile wants it (E-05): its flags right behind the command's own word,
 * each unless it is there already, none for a subcommand that has no terminal UI.
 */
export function launchWith(
  profile: Profile | AgentProfile,
  argv: readonly string[],
  environment: (name: string) => string | undefined = () => undefined,
): Launch {
  if (!isAgentProfile(profile)) return { argv, env: {}, added: [] };
  const word = argv.findIndex((arg) => profile.match.includes(commandName(["env", arg]))) + 1;
  const rest = argv.slice(word);
  const elsewhere = word === 0 || rest.some((arg) => profile.launch.notWith.includes(arg));
  const flags = elsewhere ? [] : profile.launch.flags.filter((flag) => !rest.includes(flag));
  const env = Object.fromEntries(
    Object.entries(profile.launch.env).filter(([name]) => environment(name) === undefined),
  );
  return {
    argv: [...argv.slice(0, word), ...flags, ...rest],
    env,
    added: [...flags, ...Object.entries(env).map(([name, value]) => `${name}=${value}`)],
  };
}
