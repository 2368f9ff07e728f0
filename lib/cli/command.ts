/**
 * What a command of the table is: plain data, typed against its implementation. Two parsers read it:
 * the quick one for well-formed lines, stricli for everything else (help, complaints, completion).
 */
import type { FlagParametersForType, TypedCommandPositionalParameters } from "@stricli/core";
import type { CliContext } from "./context.ts";
import { report } from "./errors.ts";

/** An implementation; what it returns is the exit status, nothing means 0, a throw is reported. */
export type Verb<FLAGS, ARGS extends readonly unknown[] = []> = (
  this: CliContext,
  flags: FLAGS,
  ...args: ARGS
) => number | void | Promise<number | void>;

export interface Example {
  readonly run: string;
  readonly does: string;
}

interface Description {
  /** One line without a full stop, for the list of commands. */
  readonly brief: string;
  /** Paragraphs between synopsis and examples. */
  readonly details?: string;
  /** Synopsis after `tamq VERB`. */
  readonly usage: readonly string[];
  readonly examples: readonly Example[];
}

export interface CommandSpec<FLAGS, ARGS extends readonly unknown[]> extends Description {
  readonly parameters: NoInfer<
    & {
      readonly flags: FlagParametersForType<FLAGS, CliContext>;
      /** Single letters for options. */
      readonly aliases?: Readonly<Record<string, keyof FLAGS & string>>;
    }
    & TypedCommandPositionalParameters<ARGS, CliContext>
  >;
  readonly load: () => Promise<{ readonly default: Verb<FLAGS, ARGS> }>;
}

/** One option, as far as both parsers need to know. */
export interface Option {
  readonly kind: "boolean" | "parsed" | "enum" | "counter";
  readonly optional?: boolean;
  readonly hidden?: boolean;
  readonly default?: unknown;
  readonly variadic?: boolean | string;
  readonly values?: readonly string[];
  readonly placeholder?: string;
  readonly parse?: (this: CliContext, input: string) => unknown;
}

export interface Argument {
  readonly placeholder?: string;
  readonly optional?: boolean;
  readonly default?: string;
  readonly parse: (this: CliContext, input: string) => unknown;
}

export type Arguments =
  | { readonly kind: "tuple"; readonly parameters: readonly Argument[] }
  | {
    readonly kind: "array";
    readonly parameter: Argument;
    readonly minimum?: number;
    readonly maximum?: number;
  };

/** A command whose types were checked where it was declared. */
export interface AnyCommand extends Description {
  readonly parameters: {
    readonly flags: Readonly<Record<string, Option>>;
    readonly aliases?: Readonly<Record<string, string>>;
    readonly positional?: Arguments;
  };
  readonly load: () => Promise<{ readonly default: Verb<unknown, readonly unknown[]> }>;
}

/** Commands under a common first word, e.g. `hub task add`. */
export interface Family {
  readonly brief: string;
  readonly commands: Readonly<Record<string, AnyCommand | Family>>;
}

export function isFamily(entry: AnyCommand | Family): entry is Family {
  return "commands" in entry;
}

/** Declares a family: like the table itself without a prototype. */
export function family(brief: string, commands: Record<string, AnyCommand | Family>): Family {
  return { brief, commands: Object.assign(Object.create(null), commands) };
}

/** Declares a command: flags and arguments must be those of its implementation. */
export function command<const FLAGS, const ARGS extends readonly unknown[]>(
  spec: CommandSpec<FLAGS, ARGS>,
): AnyCommand {
  const parameters = {
    ...spec.parameters,
    // Without a prototype, so that `--constructor` is an unknown option like any other.
    flags: Object.assign(Object.create(null), spec.parameters.flags),
  };
  return { ...spec, parameters } as unknown as AnyCommand;
}

/** Runs the implementation; sets the exit status and never throws. */
export async function runVerb(
  context: CliContext,
  command: AnyCommand,
  flags: object,
  args: readonly unknown[],
): Promise<void> {
  let status: number;
  try {
    const verb = (await command.load()).default;
    status = (await verb.call(context, flags, ...args)) ?? 0;
    await context.flush();
  } catch (error) {
    status = await failed(context, error, (flags as { json?: boolean }).json === true);
  }
  context.process.exitCode = status;
}

/** What was printed before the failure still goes out, and goes first. */
async function failed(context: CliContext, error: unknown, json: boolean): Promise<number> {
  try {
    await context.flush();
  } catch {
    // The failure that comes is the one to report.
  }
  return report(context, error, json);
}
