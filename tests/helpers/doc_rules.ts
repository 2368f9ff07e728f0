/** Which commands of the documentation a test cannot run, and what is checked of them instead. */
import manifest from "../../deno.json" with { type: "json" };
import { isFamily } from "../../lib/cli/command.ts";
import { findCommand } from "../../lib/cli/program.ts";
import type { DocCommand } from "./doc_commands.ts";

const ROOT = new URL("../../", import.meta.url).pathname;

export interface Exception {
  readonly pattern: RegExp;
  readonly reason: string;
}

/** Each must fit a command; the rest of them is run. */
export const NOT_RUN: readonly Exception[] = [
  {
    pattern: /^\.ci\/(setup|run)( |$)/,
    reason: "installs packages of the system; continuous integration runs it",
  },
  { pattern: /^deno task /, reason: "minutes long; continuous integration runs each of them" },
  { pattern: /^deno install --global /, reason: "run by tests/e2e/install_test.ts" },
  {
    pattern: /^deno run -A scripts\/release\.ts /,
    reason: "needs an executable; run by tests/integration/install_script_test.ts",
  },
  {
    pattern: /^sh install\.sh/,
    reason: "needs a release; run by tests/integration/install_script_test.ts",
  },
  {
    pattern: /^tamq service /,
    reason: "needs a systemd of the user; run by tests/integration/service_unit_test.ts",
  },
  {
    pattern: /^tamq profile test /,
    reason: "needs the real agent; tests/integration/cli_profile_test.ts runs it on stand-ins",
  },
  { pattern: / \[--/, reason: "a synopsis" },
];

/** Commands whose exit status is another one than 0 in a world where nothing is wrong. */
export const OTHER_STATUS: readonly (Exception & { readonly status: number })[] = [
  { pattern: /^tamq unblock alpha beta$/, status: 1, reason: "no pair is blocked" },
];

export function exceptionOf(command: DocCommand): Exception | undefined {
  return NOT_RUN.find(({ pattern }) => pattern.test(command.text));
}

/** What is wrong with a command that is not run; undefined when all that it names is there. */
export function complaint(text: string): string | undefined {
  // What stands in quotes is one word, whatever it holds.
  const plain = text.replace(/'[^']*'|"[^"]*"/g, "QUOTED");
  for (const part of plain.split(/ *(?:&&|\|\||;| \| ) */)) {
    const wrong = partComplaint(part);
    if (wrong !== undefined) return wrong;
  }
  return undefined;
}

function partComplaint(text: string): string | undefined {
  const words = text.split(/\s+/);
  if (words[0] === "deno" && words[1] === "task") {
    return words[2]! in manifest.tasks ? undefined : `no task ${words[2]}`;
  }
  for (const word of words) {
    if (!/^(\.ci|scripts|tests|docs)\/[\w./-]+$|^install\.sh$/.test(word)) continue;
    try {
      Deno.statSync(ROOT + word);
    } catch {
      return `no file ${word}`;
    }
  }
  return words[0] === "tamq" ? tamqComplaint(words.slice(1)) : undefined;
}

/** Options that every command has, and those that stand before one. */
const COMMON: ReadonlySet<string> = new Set(["--help", "-h", "--version", "-V"]);

function tamqComplaint(given: readonly string[]): string | undefined {
  // Brackets, alternatives and ellipses of a synopsis are no words of a command.
  const words = given.map((word) => word.replace(/^[[(]+|[\])…,.]+$/g, ""))
    .filter((word) => word !== "");
  const first = words[0];
  if (first === undefined || COMMON.has(first) || /^[A-Z]+$/.test(first)) return undefined;
  const start = words.some((word) => /^(--command|-c)(=|$)/.test(word));
  const named = first.startsWith("-") && start ? ["start", ...words] : [...words];
  // `pause|resume`, as tables write it.
  for (const name of named[0]!.split("|")) {
    const found = findCommand([name, ...named.slice(1)]);
    if (found === undefined) return `no command "${name}"`;
    if (isFamily(found.entry)) {
      const next = named[found.depth];
      if (next === undefined || next.startsWith("-") || /^[A-Z]+$/.test(next)) continue;
      const missing = next.split("|").filter((one) =>
        findCommand([...named.slice(0, found.depth), one])?.depth === found.depth
      );
      if (missing.length > 0) return `no command "${name} ${missing[0]}"`;
      continue;
    }
    const options = new Set(
      Object.keys(found.entry.parameters.flags).map((flag) =>
        "--" + flag.replace(/[A-Z]/g, (letter) => "-" + letter.toLowerCase())
      ),
    );
    const aliases = Object.keys(found.entry.parameters.aliases ?? {}).map((one) => `-${one}`);
    for (const word of named.slice(found.depth)) {
      if (word === "--") break;
      const option = /^(--?[a-z][a-z-]*)/i.exec(word)?.[1];
      if (option === undefined || COMMON.has(option)) continue;
      if (options.has(option) || options.has(option.replace(/^--no-/, "--"))) continue;
      if (!option.startsWith("--") && aliases.some((alias) => option.startsWith(alias))) continue;
      return `tamq ${name} has no option ${option}`;
    }
  }
  return undefined;
}
