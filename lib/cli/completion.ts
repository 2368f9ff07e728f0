/** Completion (C-04): three short scripts over one hidden command that knows the command table. */
import { type Application, type InputCompletion, proposeCompletions } from "@stricli/core";
import type { CliContext } from "./context.ts";

export type Shell = "bash" | "zsh" | "fish";

export interface Candidate {
  readonly word: string;
  readonly brief: string;
}

/**
 * `tamq __complete WORDS…`: one candidate a line for the last word, `word TAB brief`. Words hold no
 * quoting; the scripts quote them for their shell. Fails silently: a broken registry must not spill
 * errors over somebody's prompt.
 */
export async function complete(
  app: Application<CliContext>,
  words: readonly string[],
  context: CliContext,
): Promise<void> {
  for (const { word, brief } of await candidates(app, words, context)) {
    // A name with a line break cannot pass a line-based protocol.
    if (!/[\n\r\t]/.test(word)) context.out(`${word}\t${brief.replace(/\s+/g, " ")}`);
  }
}

export async function candidates(
  app: Application<CliContext>,
  words: readonly string[],
  context: CliContext,
): Promise<Candidate[]> {
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
  const hidden = hiddenOptions(app, inputs[0] ?? "");
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
function hiddenOptions(app: Application<CliContext>, verb: string): ReadonlySet<string> {
  if (!("getRoutingTargetForInput" in app.root)) return new Set();
  const target = app.root.getRoutingTargetForInput(verb);
  const flags = target !== undefined && "parameters" in target ? target.parameters.flags : {};
  const hidden = Object.entries(flags ?? {}).filter(([, flag]) => flag.hidden);
  return new Set(
    hidden.map(([name]) => `--${name.replace(/[A-Z]/g, (c) => `-${c.toLowerCase()}`)}`),
  );
}

const isFlagValue = (lead: readonly string[]) => lead.at(-1)?.startsWith("-") === true;

export function completionScript(shell: Shell): string {
  return SCRIPTS[shell];
}

const SCRIPTS: Readonly<Record<Shell, string>> = {
  // Words come from the line itself, not from COMP_WORDS: bash splits those at ":" and "=". xargs
  // undoes the quoting without running anything that stands in the line.
  bash: String.raw`# bash completion of tamq
_tamq() {
  local line=${"$"}{COMP_LINE:0:COMP_POINT} quote word brief prefix i
  local -a words
  for quote in '' \' \"; do
    mapfile -d '' -t words < <(
      printf '%s' "$line$quote" | xargs printf '%s\0' 2>/dev/null && printf 'read\0')
    [[ ${"$"}{words[-1]-} == read ]] && break
  done
  [[ ${"$"}{words[-1]-} == read ]] || return 0
  unset 'words[-1]'
  [[ -z $quote && $line == *[[:space:]] && $line != *\\[[:space:]] ]] && words+=('')
  (( ${"$"}{#words[@]} > 1 )) || words+=('')
  # Outside quotes bash replaces only what follows the last of these characters.
  printf -v prefix '%q' "${"$"}{words[-1]}"
  if [[ -z $quote && $prefix == *[:=@]* ]]; then
    prefix=${"$"}{prefix%"${"$"}{prefix##*[:=@]}"}
  else
    prefix=
  fi
  COMPREPLY=()
  while IFS=$'\t' read -r word brief; do
    # Inside quotes the word stands as it is; one that holds the quote cannot.
    if [[ -z $quote ]]; then printf -v word '%q' "$word"; elif [[ $word == *"$quote"* ]]; then continue; fi
    COMPREPLY+=("${"$"}{word#"$prefix"}")
  done < <(tamq __complete "${"$"}{words[@]:1}" 2>/dev/null)
}
complete -F _tamq tamq`,
  zsh: String.raw`#compdef tamq
_tamq() {
  local line
  local -a names briefs
  while IFS= read -r line; do
    names+=("${"$"}{line%%$'\t'*}")
    briefs+=("${"$"}{line%%$'\t'*}  -- ${"$"}{line#*$'\t'}")
  done < <(tamq __complete "${"$"}{(@Q)words[2,CURRENT-1]}" "${"$"}{(Q)PREFIX}" 2>/dev/null)
  (( ${"$"}{#names} )) && compadd -l -d briefs -a names
}
if [[ ${"$"}{funcstack[1]} == _tamq ]]; then _tamq "$@"; else compdef _tamq tamq; fi`,
  fish: String.raw`# fish completion of tamq
function __tamq_complete
    set -l words (commandline -xpc 2>/dev/null; or commandline -opc)
    set -l raw (commandline -ct)
    set -l current (string unescape -- $raw)
    or set current (string trim --left --chars "'\"" -- $raw)
    tamq __complete $words[2..-1] "$current" 2>/dev/null
end
complete -c tamq -e
complete -c tamq -f -a '(__tamq_complete)'`,
};
