/**
 * stricli over the command table: help, complaints, completion, and every line that the quick parser
 * leaves. The one place that knows stricli's own statuses.
 */
import {
  AliasNotFoundError,
  type Application,
  ArgumentParseError,
  buildApplication,
  buildCommand,
  buildRouteMap,
  type Command,
  EnumValidationError,
  ExitCode,
  FlagNotFoundError,
  type RouteMap,
  run,
  type StricliIntegration,
  text_en,
  UnexpectedFlagError,
  UnexpectedPositionalError,
  UnsatisfiedFlagError,
  UnsatisfiedPositionalError,
} from "@stricli/core";
import { errorText } from "../base/errors.ts";
import { nearest } from "../model/nearest.ts";
import { type AnyCommand, type Family, isFamily, runVerb } from "./command.ts";
import type { CliContext } from "./context.ts";
import { report, usageError } from "./errors.ts";
import { EXIT, EXIT_MEANINGS } from "./exit_codes.ts";
import { commandHint, likelyOptions } from "./likely.ts";
import { COMMANDS, FAMILIES, findCommand, HIDDEN } from "./program.ts";
import { VERSION } from "./version.ts";

/** Runs `inputs`, whose first word is the verb; returns the exit status. */
export async function runApplication(
  context: CliContext,
  inputs: readonly string[],
  json: boolean,
): Promise<number> {
  await run(application(context, inputs, json), inputs, context);
  const code = context.process.exitCode;
  if (typeof code !== "number") return EXIT.ok;
  if (code === ExitCode.InvalidArgument || code === ExitCode.UnknownCommand) return EXIT.usage;
  return code < 0 ? EXIT.failure : code;
}

/** In every help; commands whose own use of a status is special say so in their text. */
const EXIT_SECTION = `EXIT STATUS\n  ${
  EXIT_MEANINGS.map(([status, text]) => `${status} ${text.split(":")[0]}`).join(", ")
}\n  (more: tamq help exit-codes)`;

function build(spec: AnyCommand): Command<CliContext> {
  const examples = spec.examples.map(({ run, does }) => `  ${run}\n      ${does}`).join("\n");
  return buildCommand({
    parameters: spec.parameters as never, // checked where it was declared
    docs: {
      brief: spec.brief,
      customUsage: [...spec.usage],
      fullDescription: `${
        spec.details ?? `${spec.brief}.`
      }\n\nEXAMPLES\n${examples}\n\n${EXIT_SECTION}`,
    },
    func: function (this: CliContext, flags: object, ...args: readonly unknown[]) {
      return runVerb(this, spec, flags, args);
    } as never,
  }) as Command<CliContext>;
}

function routes() {
  return routeMap(
    { ...COMMANDS, ...FAMILIES },
    "Durable messages between workers in tmux windows",
    HIDDEN,
  );
}

function routeMap(
  entries: Readonly<Record<string, AnyCommand | Family>>,
  brief: string,
  hidden: readonly string[] = [],
): RouteMap<CliContext> {
  const routes: Record<string, Command<CliContext> | RouteMap<CliContext>> = Object.create(null);
  for (const [name, entry] of Object.entries(entries)) {
    routes[name] = isFamily(entry) ? routeMap(entry.commands, entry.brief) : build(entry);
  }
  return buildRouteMap<string, CliContext>({
    routes,
    aliases: Object.create(null),
    docs: { brief, hideRoute: Object.fromEntries(hidden.map((name) => [name, true])) },
  });
}

/** The application; `inputs` and `json` only shape its complaints. */
export function application(
  context: CliContext,
  inputs: readonly string[],
  json = false,
): Application<CliContext> {
  const verb = inputs.slice(0, findCommand(inputs)?.depth ?? 1).join(" ");
  // stricli asks for a text per complaint and prints them all. One is enough, and `report` prints
  // it; stricli gets an empty text, which its stream drops.
  let complained = false;
  const complain = (error: unknown) => {
    if (!complained) report(context, error, json);
    complained = true;
    return "";
  };
  return buildApplication<CliContext>(
    routes(),
    {
      name: "tamq",
      scanner: { caseStyle: "allow-kebab-for-camel", allowArgumentEscapeSequence: true },
      documentation: { disableAnsiColor: true },
      localization: {
        text: {
          ...text_en,
          headers: { ...text_en.headers, flags: "OPTIONS" },
          briefs: { ...text_en.briefs, argumentEscapeSequence: "What follows is no option" },
          noCommandRegisteredForInput: ({ input, corrections }) => {
            const like = corrections.map((name) => name.replaceAll(/["`]/g, ""));
            return complain(
              usageError(
                `unknown command "${input}"`,
                commandHint(input, like, input === inputs[0]),
              ),
            );
          },
          exceptionWhileParsingArguments: (error) =>
            complain(usageError(parseComplaint(error, inputs), `see: tamq ${verb} --help`)),
          exceptionWhileRunningCommand: complain,
        },
      },
    },
    { help: helpFlag, version: versionFlag },
  );
}

const versionFlag: StricliIntegration<CliContext> = {
  flag: {
    brief: "Print the version",
    aliases: ["V"],
    global: true,
    complete: true,
    run() {
      this.process.stdout.write(`tamq ${VERSION}\n`);
    },
  },
};

const helpFlag: StricliIntegration<CliContext> = {
  flag: {
    brief: "Print this help",
    aliases: ["h"],
    global: true,
    complete: true,
    defaultForRouteMap: true,
    run(app, { result, additionalFlags, text }) {
      const page = result.target.formatHelp({
        prefix: result.prefix,
        additionalFlags,
        includeArgumentEscapeSequenceFlag: true,
        includeHidden: false,
        config: app.config.documentation,
        text,
        ansiColor: false,
      });
      // A synopsis line for each of --help and --version would say nothing.
      this.process.stdout.write(
        page.replace(/^ {2}tamq (?:[a-z][a-z-]* )+--(?:help|version)\n/gm, ""),
      );
    },
  },
};

/** stricli's sentence in our tone: lower case, option names spelt as on the command line. */
function parseComplaint(error: unknown, inputs: readonly string[]): string {
  if (error instanceof FlagNotFoundError) {
    const like = likelyOptions(error.input, commandOf(inputs))
      .map((name) => `--${name}`).join(" or ");
    return `unknown option --${error.input}${like ? `; did you mean ${like}?` : ""}`;
  }
  if (error instanceof AliasNotFoundError) return `unknown option -${error.input}`;
  if (error instanceof ArgumentParseError) {
    const name = error.externalFlagNameOrPlaceholder;
    const where = /^[A-Z]/.test(name) ? name : `--${name}`;
    return `"${error.input}" is no ${where}: ${errorText(error.exception)}`;
  }
  if (error instanceof UnsatisfiedFlagError) {
    const name = error.externalFlagName;
    return `option --${name} ${isGiven(name, inputs) ? "needs a value" : "is missing"}`;
  }
  if (error instanceof UnsatisfiedPositionalError) {
    return `argument ${error.placeholder} is missing`;
  }
  if (error instanceof UnexpectedPositionalError) return `unexpected argument "${error.input}"`;
  if (error instanceof UnexpectedFlagError) {
    return `option --${error.externalFlagName} is given twice`;
  }
  if (error instanceof EnumValidationError) {
    const like = nearest(error.input, error.values, 1)[0];
    return `--${error.externalFlagName} is one of ${
      error.values.join(", ")
    }, not "${error.input}"` +
      (like === undefined ? "" : `; did you mean ${like}?`);
  }
  return errorText(error);
}

/** Whether the option stands in the line at all, by its name or its letter. */
function isGiven(name: string, inputs: readonly string[]): boolean {
  const { aliases = {} } = commandOf(inputs)?.parameters ?? {};
  const letters = Object.keys(aliases).filter((letter) => aliases[letter] === name);
  return inputs.some((word) =>
    word === `--${name}` || word.startsWith(`--${name}=`) ||
    letters.some((letter) => word === `-${letter}`)
  );
}

function commandOf(inputs: readonly string[]): AnyCommand | undefined {
  const entry = findCommand(inputs)?.entry;
  return entry === undefined || isFamily(entry) ? undefined : entry;
}
