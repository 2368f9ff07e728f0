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
  return found.filter(({ kind, completion }) => {
    if (kind === "argument:flag") {
      // Options show when asked for, once each.
      return partial.startsWith("-") && !seen.has(completion);
    }
    return kind !== "argument:value" || isFlagValue(lead) || !seen.has(completion);
  }).map(({ completion, brief }) => ({ word: completion, brief }));
}

const isFlagValue = (lead: readonly string[]) => lead.at(-1)?.startsWith("-") === true;

export function completionScript(shell: Shell): string {
  return SCRIPTS[shell];
}

const SCRIPTS: Readonly<Record<Shell, string>> = {
  // Words come from the line itself, not from COMP_WORDS: bash splits those at ":" and "=". Each
  // candidate is quoted by printf %q, since readline inserts it as it stands.
  bash: `# bash completion of tamq
_tamq() {
  local line=\${COMP_LINE:0:COMP_POINT} current=\${COMP_WORDS[COMP_CWORD]} word brief prefix
  local -a words=()
  local IFS=$' \\t\\n'
  # Undo the quoting of words already typed without running anything: xargs knows quotes, not $(…).
  while IFS= read -r -d '' word; do words+=("$word"); done < <(
    printf '%s' "$line" | xargs -r printf '%s\\0' 2>/dev/null)
  [[ $line == *[[:space:]] && $line != *\\\\[[:space:]] ]] && words+=('')
  (( \${#words[@]} > 1 )) || words+=('')
  local typed=\${words[-1]}
  COMPREPLY=()
  while IFS=$'\\t' read -r word brief; do
    [[ -n $word ]] || continue
    printf -v word '%q' "$word"
    COMPREPLY+=("$word")
  done < <(tamq __complete "\${words[@]:1}" 2>/dev/null)
  # bash replaces only what follows the last ":" or "=" of the word.
  printf -v typed '%q' "$typed"
  case $typed in
    *[:=]*)
      prefix=\${typed%"\${typed##*[:=]}"}
      local i
      for i in "\${!COMPREPLY[@]}"; do COMPREPLY[i]=\${COMPREPLY[i]#"$prefix"}; done ;;
  esac
}
complete -F _tamq tamq`,
  zsh: `#compdef tamq
_tamq() {
  local -a words_typed names briefs
  local line word brief
  words_typed=("\${(@Q)words[2,CURRENT]}")
  while IFS= read -r line; do
    word=\${line%%$'\\t'*}
    brief=\${line#*$'\\t'}
    names+=("$word")
    briefs+=("\${word}\${brief:+  -- $brief}")
  done < <(tamq __complete "\${words_typed[@]}" 2>/dev/null)
  (( \${#names} )) && compadd -l -d briefs -a names
}
if [ "$funcstack[1]" = "_tamq" ]; then _tamq "$@"; else compdef _tamq tamq; fi`,
  fish: `# fish completion of tamq
function __tamq_complete
    set -l words (commandline --tokens-expanded --cut-at-cursor 2>/dev/null; or commandline -opc)
    set -e words[1]
    tamq __complete $words (commandline -ct | string unescape) 2>/dev/null
end
complete -c tamq -e
complete -c tamq -f -a '(__tamq_complete)'`,
};
