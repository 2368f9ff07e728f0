/**
 * A guard for shells (B-02): a document that holds an address is shown far more often than an
 * address is meant by `cat`. What a command prints that shows what files hold is not sent by
 * itself; the operator is told. Only commands entered at a shell are looked at: a worker that is
 * such a program (`--command cat`) speaks for itself.
 */
import { commandName } from "../model/command_name.ts";

const SHOWING =
  ("cat bat batcat tac nl head tail less more most pg view zcat bzcat xzcat zstdcat zless " +
    "zmore grep egrep fgrep zgrep rg ag ack sed awk gawk mawk diff colordiff delta git man info " +
    "strings xxd od hexdump fold fmt column pr glow mdcat jq yq").split(" ");
const NAMES = new Set(SHOWING);

/** Where a command may begin in a line of shell. */
const COMMAND = new RegExp(
  "(?:^|[|;&(){`!\\n]|\\b(?:sudo|command|builtin|exec|xargs|time|then|do|else|env|nohup)\\s)\\s*" +
    `(?:\\w+=\\S*\\s+)*(?:\\S*/)?(?:${SHOWING.join("|")})(?=$|[\\s;|&<>)\`])`,
);
const MENTION = new RegExp(
  `(?:^|[\\s|;&(){\`])(?:\\S*/)?(?:${SHOWING.join("|")})(?=$|[\\s;|&<>)\`])`,
);

/** Whether a command line runs a program that shows what files hold. */
export function showsFiles(line: string): boolean {
  return COMMAND.test(line);
}

/** The same for a row of the screen, where a prompt may stand before the command. */
export function mentionsShower(row: string): boolean {
  return MENTION.test(row);
}

/** Whether a process is such a program. */
export function isShower(argv: readonly string[]): boolean {
  return NAMES.has(commandName(argv));
}
