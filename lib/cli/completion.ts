/** Completion (C-04): the candidates, from the command table, for the shells' scripts. */
import { type InputCompletion, proposeCompletions } from "@stricli/core";
import { application } from "./application.ts";
import type { CliContext } from "./context.ts";
import { isFamily } from "./command.ts";
import { type Candidate, FILES, valueCandidates } from "./completion_values.ts";
import { optionName } from "./likely.ts";
import { findCommand } from "./program.ts";

/** Instead of candidates: no name of a repository holds a control character. */
const FILES_LINE = "\u001ffiles";

/**
 * `tamq __complete WORDS…`: one candidate a line for the last word, `word TAB brief`. Words hold no
 * quoting; the scripts quote them for their shell. Where a file's name belongs, one line with a unit
 * separator and `files` tells the shell to complete it. Fails silently: a broken registry must not spill
 * errors over somebody's prompt.
 */
export async function complete(words: readonly string[], context: CliContext): Promise<void> {
  const found = await candidates(words, context);
  if (found === FILES) return context.out(FILES_LINE);
  for (const { word, brief } of found) {
    // A name with a line break cannot pass a line-based protocol.
    if (!/[\n\r\t]/.test(word)) context.out(`${word}\t${brief.replace(/\s+/g, " ")}`);
  }
}

async function candidates(
  words: readonly string[],
  context: CliContext,
): Promise<readonly Candidate[] | typeof FILES> {
  const app = application(context, []);
  const partial = words.at(-1) ?? "";
  const lead = words.slice(0, -1);
  // Without a command the options are those of `start`.
  const isStart = (lead[0] ?? partial).startsWith("-");
  const inputs = isStart ? ["start", ...lead, partial] : [...lead, partial];
  const values = await valueCandidates(inputs, context).catch(() => undefined);
  if (values !== undefined) return values;
  const attached = /^(--[a-z][a-z-]*=)(.*)$/s.exec(partial);
  let found: readonly InputCompletion[];
  try {
    found = attached === null
      ? await proposeCompletions(app, inputs, context)
      // stricli completes `--option value`; in `--option=value` the option is part of the word.
      : (await proposeCompletions(
        app,
        [...inputs.slice(0, -1), attached[1]!.slice(0, -1), attached[2]!],
        context,
      )).map((one) => ({ ...one, completion: attached[1] + one.completion }));
  } catch {
    return [];
  }
  const seen = new Set(lead);
  const hidden = hiddenOptions(inputs);
  return found.filter(({ kind, completion }) => {
    if (kind === "argument:flag") {
      // Options show when asked for, once each.
      return partial.startsWith("-") && !seen.has("--") && !seen.has(completion) &&
        !hidden.has(completion) &&
        completion !== "--";
    }
    return kind !== "argument:value" || isFlagValue(lead) || !seen.has(completion);
  }).map(({ completion, brief }) => ({ word: completion, brief }));
}

/** stricli proposes hidden options like any other. */
function hiddenOptions(words: readonly string[]): ReadonlySet<string> {
  const entry = findCommand(words)?.entry;
  const flags = entry === undefined || isFamily(entry) ? {} : entry.parameters.flags;
  const hidden = Object.entries(flags).filter(([, option]) => option.hidden);
  return new Set(hidden.map(([name]) => `--${optionName(name)}`));
}

const isFlagValue = (lead: readonly string[]) => lead.at(-1)?.startsWith("-") === true;
