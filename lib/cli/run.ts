/** From an argument vector to an exit status; the one place that knows stricli's own statuses. */
import {
  AliasNotFoundError,
  type Application,
  ArgumentParseError,
  buildApplication,
  EnumValidationError,
  ExitCode,
  FlagNotFoundError,
  run,
  type StricliIntegration,
  text_en,
  UnexpectedFlagError,
  UnexpectedPositionalError,
  UnsatisfiedFlagError,
  UnsatisfiedPositionalError,
} from "@stricli/core";
import { errorText } from "../base/errors.ts";
import { type CliContext, processContext } from "./context.ts";
import { report, usageError } from "./errors.ts";
import { EXIT } from "./exit_codes.ts";
import { COMMANDS, routes } from "./program.ts";
import { VERSION } from "./version.ts";

/** Runs one command; never throws. */
export async function runCli(
  given: readonly string[],
  context: CliContext = processContext(),
): Promise<number> {
  const args = given.map(separateCount);
  const first = args[0];
  try {
    if (first === undefined || first === "--help" || first === "-h") {
      const { overview } = await import("./overview.ts");
      context.out(overview());
    } else if (first === "--version" || first === "-V") {
      context.out(`tamq ${VERSION}`);
    } else if (first === "__complete") {
      const { complete } = await import("./completion.ts");
      await complete(application(context, ""), args.slice(1), context);
    } else {
      await dispatch(args, first, context);
    }
    await context.flush();
  } catch (error) {
    return report(context, error, wantsJson(args));
  }
  return exitStatus(context);
}

async function dispatch(args: readonly string[], first: string, context: CliContext) {
  // `tamq --command CMD REPO…` in any order of its words is `tamq start …`.
  const isStart = !(first in COMMANDS) && beforeDashes(args).some(isCommandOption);
  if (!isStart && first.startsWith("-")) {
    throw usageError(`unknown option "${first}"`, "see: tamq --help");
  }
  const inputs = isStart ? ["start", ...args] : args;
  await run(application(context, inputs[0]!, wantsJson(args)), inputs, context);
}

const isCommandOption = (word: string) => /^(?:--command(?:=|$)|-c(?:=|$))/.test(word);

/** The application; `verb` and `json` only shape its complaints. */
export function application(
  context: CliContext,
  verb: string,
  json = false,
): Application<CliContext> {
  // stricli asks for a text per complaint and prints them all. One is enough, and `report` prints
  // it; stricli gets an empty text, which its stream drops.
  let complained = false;
  const complain = (error: unknown) => {
    if (!complained) report(context, error, json);
    complained = true;
    return "";
  };
  return buildApplication<CliContext>(
    routes,
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
            const like = corrections.map((name) => name.replaceAll("`", '"')).join(" or ");
            const hint = like === "" ? "see: tamq --help" : `did you mean ${like}?`;
            return complain(usageError(`unknown command "${input}"`, hint));
          },
          exceptionWhileParsingArguments: (error) =>
            complain(usageError(parseComplaint(error), `see: tamq ${verb} --help`)),
          exceptionWhileLoadingCommandFunction: complain,
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
      this.process.stdout.write(page.replace(/^ {2}tamq \S+ --(?:help|version)\n/gm, ""));
    },
  },
};

/** stricli's sentence in our tone: lower case, option names spelt as on the command line. */
function parseComplaint(error: unknown): string {
  if (error instanceof FlagNotFoundError) {
    const like = error.corrections.map((name) => `--${name}`).join(" or ");
    return `unknown option --${error.input}${like ? `; did you mean ${like}?` : ""}`;
  }
  if (error instanceof AliasNotFoundError) return `unknown option -${error.input}`;
  if (error instanceof ArgumentParseError) {
    const name = error.externalFlagNameOrPlaceholder;
    const where = /^[A-Z]/.test(name) ? name : `--${name}`;
    return `"${error.input}" is no ${where}: ${errorText(error.exception)}`;
  }
  if (error instanceof UnsatisfiedFlagError) {
    return `option --${error.externalFlagName} needs a value`;
  }
  if (error instanceof UnsatisfiedPositionalError) {
    return `argument ${error.placeholder} is missing`;
  }
  if (error instanceof UnexpectedPositionalError) return `unexpected argument "${error.input}"`;
  if (error instanceof UnexpectedFlagError) {
    return `option --${error.externalFlagName} is given twice`;
  }
  if (error instanceof EnumValidationError) {
    return `--${error.externalFlagName} is one of ${error.values.join(", ")}, not "${error.input}"`;
  }
  return errorText(error);
}

/** The words that are options or arguments of tamq itself. */
function beforeDashes(args: readonly string[]): readonly string[] {
  const end = args.indexOf("--");
  return end < 0 ? args : args.slice(0, end);
}

function wantsJson(args: readonly string[]): boolean {
  return beforeDashes(args).includes("--json");
}

/** `-n5` as people write it, in the form stricli reads. */
function separateCount(word: string): string {
  return word.replace(/^-([a-zA-Z])(\d+)$/, "-$1=$2");
}

function exitStatus(context: CliContext): number {
  const code = context.process.exitCode;
  if (typeof code !== "number") return EXIT.ok;
  if (code === ExitCode.InvalidArgument || code === ExitCode.UnknownCommand) return EXIT.usage;
  return code < 0 ? EXIT.failure : code;
}
