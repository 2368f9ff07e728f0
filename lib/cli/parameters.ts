/** Options and arguments that several commands share, with their parsers and completions. */
import type { CliContext } from "./context.ts";
import { late } from "./late.ts";

/** `--json` of every command that prints records. */
export const json = {
  kind: "boolean",
  optional: true,
  withNegated: false,
  brief: "One JSON object a line, for programs",
} as const;

export const COLOR_CHOICES = ["auto", "always", "never"] as const;
export type ColorChoice = typeof COLOR_CHOICES[number];

/** The levels of a log line, the least important first. */
export const LEVELS = ["debug", "info", "warn", "error"] as const;

/** Who writes logs: the message service and the windows' brokers share one file. */
export const LOG_SOURCES = ["service", "window", "engine", "hub"] as const;
export type LogSource = typeof LOG_SOURCES[number];

/** `--color` of every command that colours. */
export const color = {
  kind: "enum",
  values: COLOR_CHOICES,
  optional: true,
  brief: "Colour: auto (on a terminal, unless NO_COLOR is set), always or never",
} as const;

/** A switch that is off unless given. */
export function flag(brief: string, hidden = false) {
  return { kind: "boolean", optional: true, withNegated: false, brief, hidden } as const;
}

export function text(placeholder: string, brief: string) {
  return { kind: "parsed", parse: String, optional: true, placeholder, brief } as const;
}

/** A repository's registered name, completed from the live gita registry. */
export function repo(brief: string) {
  return { ...text("REPO", brief), proposeCompletions: repoNames } as const;
}

/** An option's count: a whole number within bounds. */
export function count(minimum: number, maximum: number) {
  return (input: string): number => {
    const value = /^\d{1,9}$/.test(input) ? Number(input) : NaN;
    if (!(value >= minimum && value <= maximum)) {
      throw new Error(`a whole number from ${minimum} to ${maximum} is wanted`);
    }
    return value;
  };
}

export const repoArgument = {
  parse: String,
  placeholder: "REPO",
  brief: "Name of a repository in the gita registry",
  proposeCompletions: repoNames,
} as const;

export const messageId = {
  parse: String,
  placeholder: "ID",
  brief: "Message id, as `tamq send` and `tamq history` print it, or its first characters",
} as const;

/** Registered names that begin so; none when the registry cannot be read. */
export async function repoNames(this: CliContext, partial: string): Promise<string[]> {
  const { gitaRegistry } = await late("gita");
  try {
    const registry = gitaRegistry(this.env);
    const names = registry.names().filter((name) => name.startsWith(partial));
    return names.filter((name) => registry.find(name) !== "unknown"); // rows that gita would not show
  } catch {
    return []; // a broken registry must not take the options' completion with it
  }
}
