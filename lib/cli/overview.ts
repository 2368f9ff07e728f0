/** What `tamq --help` prints: derived from the command table. */
import { COMMANDS, FAMILIES, GROUPS } from "./program.ts";
import { table } from "./render.ts";

export function overview(): string {
  const groups = GROUPS.map(([title, names]) => {
    const rows = table(names.map((name) => [name, (COMMANDS[name] ?? FAMILIES[name])!.brief]));
    return `${title.toUpperCase()}\n${rows.replace(/^/gm, "  ")}`;
  });
  return `tamq: durable messages between workers in tmux windows

USAGE
  tamq --command CMD [--mode MODE] REPO...   open a window per repository, run CMD in each
  tamq COMMAND [OPTIONS] [ARGUMENTS]

${groups.join("\n\n")}

OPTIONS
  -h, --help     help of tamq, or of a command
  -V, --version  print the version

More: tamq COMMAND --help, tamq help config, tamq help exit-codes, tamq help protocol`;
}
