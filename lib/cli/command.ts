/** Builds a command of the table: typed flags, help with examples, an implementation loaded late. */
import {
  buildCommand,
  type Command,
  type FlagParametersForType,
  type TypedCommandPositionalParameters,
} from "@stricli/core";
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

export interface CommandSpec<FLAGS, ARGS extends readonly unknown[]> {
  /** One line without a full stop, for the list of commands. */
  readonly brief: string;
  /** Paragraphs between synopsis and examples. */
  readonly details?: string;
  /** Synopsis after `tamq VERB`. */
  readonly usage: readonly string[];
  readonly examples: readonly Example[];
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

export function command<const FLAGS, const ARGS extends readonly unknown[]>(
  spec: CommandSpec<FLAGS, ARGS>,
): Command<CliContext> {
  const parameters = {
    ...spec.parameters,
    // Without a prototype, so that `--constructor` is an unknown option like any other.
    flags: Object.assign(Object.create(null), spec.parameters.flags),
  };
  const examples = spec.examples.map(({ run, does }) => `  ${run}\n      ${does}`).join("\n");
  return buildCommand({
    parameters: parameters as never,
    docs: {
      brief: spec.brief,
      customUsage: [...spec.usage],
      fullDescription: `${spec.details ?? `${spec.brief}.`}\n\nEXAMPLES\n${examples}`,
    },
    loader: async () => {
      const verb = (await spec.load()).default;
      return async function (this: CliContext, given: FLAGS, ...args: ARGS): Promise<void> {
        let status: number;
        try {
          status = (await verb.call(this, given, ...args)) ?? 0;
          await this.flush();
        } catch (error) {
          status = await failed(this, error, (given as { json?: boolean }).json === true);
        }
        this.process.exitCode = status;
      } as never;
    },
  }) as Command<CliContext>;
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
