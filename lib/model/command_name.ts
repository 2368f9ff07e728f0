/** What a command line is called, whatever runs it. */

/** Programs that run another one: the name behind them decides. */
const RUNNERS = new Set(["env", "node", "bun", "deno", "npx", "bunx", "exec", "nice", "stdbuf"]);
/** Their options that take the next word. */
const WITH_VALUE = new Set(["-u", "-n", "-C", "-S", "-r", "--require", "--import", "-p"]);

/** The name that profiles match for a command line: `codex` for `node /x/bin/codex.js --flag`. */
export function commandName(argv: readonly string[]): string {
  for (let i = 0; i < argv.length; i++) {
    const word = argv[i]!;
    const name = word.slice(word.lastIndexOf("/") + 1).replace(/\.(?:[cm]?js|ts|py|sh)$/, "");
    if (i === 0 && !RUNNERS.has(name)) return name;
    if (RUNNERS.has(name) || name === "run") continue;
    if (word.startsWith("-")) {
      if (WITH_VALUE.has(word)) i++;
      continue;
    }
    if (/^[A-Za-z_][A-Za-z0-9_]*=/.test(word)) continue; // env NAME=VALUE
    // npx takes a package: @scope/name@1.2.3
    return name.replace(/(?!^)@.*$/, "");
  }
  return "";
}
