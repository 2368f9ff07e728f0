/** From an argument vector to an exit status. */
import { type AnyCommand, isFamily, runVerb } from "./command.ts";
import { type CliContext, processContext } from "./context.ts";
import { report, usageError } from "./errors.ts";
import { EXIT } from "./exit_codes.ts";
import { late } from "./late.ts";
import { type Parsed, quickParse } from "./quick.ts";

/**
 * Commands that scripts and agents run all the time, and where each is described: for them one file of
 * the command table is read instead of all (4 of 32 ms of CPU).
 */
export const HOT: Readonly<Record<string, () => Promise<AnyCommand>>> = {
  __proto__: null as never,
  ack: async () => (await late("cli/commands_messages")).ack,
  inbox: async () => (await late("cli/commands_messages")).inbox,
  ping: async () => (await late("cli/commands_service")).ping,
  send: async () => (await late("cli/commands_messages")).send,
  status: async () => (await late("cli/commands_service")).status,
  who: async () => (await late("cli/commands_windows")).who,
};

/** Runs one command; never throws. */
export async function runCli(
  given: readonly string[],
  context: CliContext = processContext(),
): Promise<number> {
  const args = given.map(separateCount);
  const first = args[0];
  let status: number = EXIT.ok;
  try {
    if (first === undefined || first === "--help" || first === "-h") {
      const { overview } = await late("cli/overview");
      context.out(overview());
    } else if (first === "--version" || first === "-V") {
      const { VERSION } = await late("cli/version");
      context.out(`tamq ${VERSION}`);
    } else if (first === "__complete") {
      const { complete } = await late("cli/completion");
      await complete(args.slice(1), context);
    } else {
      status = await dispatch(args, first, context);
    }
    await context.flush();
    return status;
  } catch (error) {
    return report(context, error, wantsJson(args));
  }
}

async function dispatch(
  args: readonly string[],
  first: string,
  context: CliContext,
): Promise<number> {
  const hot = await HOT[first]?.();
  if (hot !== undefined) {
    const parsed = quickParse(context, hot, args.slice(1));
    if (parsed !== undefined) return await perform(context, hot, parsed);
  }
  const { COMMANDS, FAMILIES, findCommand } = await late("cli/program");
  // `tamq --command CMD REPO…` in any order of its words is `tamq start …`.
  const named = first in COMMANDS || first in FAMILIES;
  const isStart = !named && beforeDashes(args).some(isCommandOption);
  if (!isStart && first.startsWith("-")) {
    const { likelyOptions } = await late("cli/likely");
    const like = likelyOptions(first, COMMANDS.start).map((name) => `--${name}`).join(" or ");
    throw usageError(
      `unknown option "${first}"`,
      like === "" ? "see: tamq --help" : `did you mean ${like}?`,
    );
  }
  const words = isStart ? ["start", ...args] : args;
  const found = findCommand(words);
  const command = found === undefined || isFamily(found.entry) ? undefined : found.entry;
  const parsed = command && quickParse(context, command, words.slice(found!.depth));
  if (parsed === undefined) {
    const { runApplication } = await late("cli/application");
    return await runApplication(context, words, wantsJson(args));
  }
  return await perform(context, command!, parsed);
}

async function perform(
  context: CliContext,
  command: AnyCommand,
  { flags, args }: Parsed,
): Promise<number> {
  await runVerb(context, command, flags, args);
  return Number(context.process.exitCode);
}

const isCommandOption = (word: string) => /^(?:--command(?:=|$)|-c(?:=|$))/.test(word);

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
