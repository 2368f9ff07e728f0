/** The completion scripts of `tamq completion`; each asks the hidden command `tamq __complete`. */

export type Shell = "bash" | "zsh" | "fish";

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
  local files=
  while IFS=$'\t' read -r word brief; do
    [[ $word == $'\x1f'files ]] && { files=1; continue; }
    # Inside quotes the word stands as it is; one that holds the quote cannot.
    if [[ -z $quote ]]; then printf -v word '%q' "$word"; elif [[ $word == *"$quote"* ]]; then continue; fi
    COMPREPLY+=("${"$"}{word#"$prefix"}")
  done < <(tamq __complete "${"$"}{words[@]:1}" 2>/dev/null)
  [[ -n $files ]] || return 0
  # Files' names are quoted by bash itself.
  compopt -o filenames 2>/dev/null
  word=${"$"}{words[-1]}
  [[ $word == --*=* ]] && word=${"$"}{word#*=}
  prefix=
  [[ -z $quote ]] && prefix=${"$"}{word%"${"$"}{word##*[:=@]}"}
  while IFS= read -r brief; do
    COMPREPLY+=("${"$"}{brief#"$prefix"}")
  done < <(compgen -f -- "$word")
}
complete -F _tamq tamq`,
  zsh: String.raw`#compdef tamq
_tamq() {
  local line
  local -a names briefs
  while IFS= read -r line; do
    if [[ $line == $'\x1f'files ]]; then
      compset -P '--*='
      _files
      return
    fi
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
    set -l found (tamq __complete $words[2..-1] "$current" 2>/dev/null)
    if test "$found[1]" = \x1f'files'
        set -l option (string match -r -- '^--[a-z-]+=' "$current")
        for file in (__fish_complete_path (string replace -r -- '^--[a-z-]+=' '' "$current"))
            echo "$option$file"
        end
    else if set -q found[1]
        string join \n -- $found
    end
end
complete -c tamq -e
complete -c tamq -f -a '(__tamq_complete)'`,
};
