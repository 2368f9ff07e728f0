/**
 * Splits `--command` into words as a shell would quote them, and refuses whatever a shell would do
 * beyond that: the command runs without a shell, so an operator that was silently taken as text
 * would not do what its author meant.
 */
import { TamqError } from "../base/errors.ts";

/** Characters that mean something to a shell when they stand unquoted anywhere in a word. */
const OPERATORS = "|&;<>()$`\n\r*?[";

/** The words of `line`; throws `command_empty`, `command_unbalanced` or `command_needs_shell`. */
export function splitWords(line: string): string[] {
  const words: string[] = [];
  let word: string | undefined; // undefined between words; "" once a quote has opened one
  for (let i = 0; i < line.length; i++) {
    const char = line[i]!;
    if (char === " " || char === "\t") {
      if (word !== undefined) words.push(word);
      word = undefined;
    } else if (char === "'") {
      const end = line.indexOf("'", i + 1);
      if (end < 0) throw unbalanced("'");
      word = (word ?? "") + line.slice(i + 1, end);
      i = end;
    } else if (char === '"') {
      const [text, end] = doubleQuoted(line, i + 1);
      word = (word ?? "") + text;
      i = end;
    } else if (char === "\\") {
      if (++i >= line.length) throw unbalanced("\\");
      // A backslash before a line feed joins the lines, in a word as between words.
      if (line[i] !== "\n") word = (word ?? "") + line[i];
    } else if (OPERATORS.includes(char) || (word === undefined && "~#".includes(char))) {
      throw needsShell(char);
    } else {
      word = (word ?? "") + char;
    }
  }
  if (word !== undefined) words.push(word);
  if (words.length === 0 || words[0] === "") {
    throw new TamqError("INVALID_ARGUMENT", "command_empty", "the command is empty", {
      hint: "give the program to run, for example --command bash",
    });
  }
  if (/^[A-Za-z_][A-Za-z0-9_]*=/.test(words[0]!)) {
    throw new TamqError(
      "INVALID_ARGUMENT",
      "command_needs_shell",
      `the command begins with an assignment, "${
        words[0]
      }", which only a shell or env(1) understands`,
      { hint: "write --command 'env NAME=value PROGRAM'" },
    );
  }
  return words;
}

/** The text of a double-quoted part that begins at `start`, and the index of its closing quote. */
function doubleQuoted(line: string, start: number): [string, number] {
  let text = "";
  for (let i = start; i < line.length; i++) {
    const char = line[i]!;
    if (char === '"') return [text, i];
    if (char === "$" || char === "`") throw needsShell(char);
    if (char === "\\" && i + 1 < line.length && '$`"\\\n'.includes(line[i + 1]!)) {
      i++;
      if (line[i] !== "\n") text += line[i];
    } else text += char;
  }
  throw unbalanced('"');
}

function unbalanced(what: string): TamqError {
  const text = what === "\\"
    ? "the command ends with a lone backslash"
    : `the command opens a ${what} quote and never closes it`;
  return new TamqError("INVALID_ARGUMENT", "command_unbalanced", text, {
    hint: "check the quotes in --command",
  });
}

function needsShell(char: string): TamqError {
  const name = char === "\n" || char === "\r" ? "a line break" : `"${char}"`;
  return new TamqError(
    "INVALID_ARGUMENT",
    "command_needs_shell",
    `the command holds ${name}, which only a shell understands, and it runs without one`,
    { hint: `write --command "sh -c '...'", or quote the character to mean itself` },
  );
}

/** One word written so that a POSIX shell reads it back unchanged. */
export function quoteWord(word: string): string {
  // No `=` in front: zsh reads `=name` as the path of a program.
  if (/^[A-Za-z0-9_@%+:,./-]+$/.test(word)) return word;
  return `'${word.replaceAll("'", "'\\''")}'`;
}
