/** Completion (C-04): the candidates, from the command table, for the shells' scripts. */
import { type InputCompletion, proposeCompletions } from "@stricli/core";
import { application } from "./application.ts";
import type { CliContext } from "./context.ts";
import { isFamily } from "./command.ts";
import { findCommand } from "./program.ts";

interface Candidate {
  readonly word: string;
  readonly brief: string;
}

/**
 * `tamq __complete WORDS…`: one candidate a line for the last word, `word TAB brief`. Words hold no
 * quoting; the scripts quote them for their shell. Fails silently: a broken registry must not spill
 * errors over somebody's prompt.
 */
export async function complete(words: readonly string[], context: CliContext): Promise<void> {
  for (const { word, brief } of await candidates(words, context)) {
    // A name with a line break cannot pass a line-based protocol.
    if (!/[\n\r\t]/.test(word)) context.out(`${word}\t${brief.replace(/\s+/g, " ")}`);
  }
}

async function candidates(words: readonly string[], context: CliContext): Promise<Candidate[]> {
  const app = application(context, []);
  const partial = words.at(-1) ?? "";
  const lead = words.slice(0, -1);
  // Without a command the options are those of `start`.
  const isStart = (lead[0] ?? partial).startsWith("-");
  const inputs = isStart ? ["start", ...lead, partial] : [...lead, partial];
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
  return new Set(
    hidden.map(([name]) => `--${name.replace(/[A-Z]/g, (c) => `-${c.toLowerCase()}`)}`),
  );
}

const isFlagValue = (lead: readonly string[]) => lead.at(-1)?.startsWith("-") === true;
