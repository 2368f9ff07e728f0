/** The key that opens the operator's popup, in a running tmux server (B-03). */
import { TamqError } from "../base/errors.ts";
import { literal, type Tmux } from "./client.ts";

/** How a binding of ours is known again. */
const MARK = "tamq compose";

export interface ComposeKey {
  readonly key: string;
  /** Without the prefix. */
  readonly root: boolean;
  /** What runs in the popup; the pane's id is added behind it. */
  readonly argv: readonly string[];
  readonly env: Readonly<Record<string, string>>;
}

/** The words behind `bind-key`. */
function binding({ key, root, argv, env }: ComposeKey): string[] {
  const words = [
    "env",
    ...Object.entries(env).map(([name, value]) => `${name}=${value}`),
    ...argv,
  ];
  // run-shell -C expands formats in its text and then runs it as a tmux command; the popup runs its
  // words without a shell.
  const popup = [
    "display-popup",
    "-E",
    "-w",
    "80%",
    "-h",
    "60%",
    ...words.map((word) => quoted(literal(word))),
    "--pane",
    "#{pane_id}",
  ].join(" ");
  return ["-N", MARK, "-T", root ? "root" : "prefix", key, "run-shell", "-C", popup];
}

/** The line that a tmux.conf would have. */
export function composeLine(wish: ComposeKey): string {
  return ["bind-key", ...binding(wish).map(quoted)].join(" ");
}

/** Throws `key_bound` for a key that does something else, `tmux_failed` for one that is none. */
export async function bindCompose(tmux: Tmux, wish: ComposeKey): Promise<void> {
  const table = wish.root ? "root" : "prefix";
  const { code, stdout } = await tmux.attempt("list-keys", "-T", table, wish.key);
  if (code === 0 && stdout.trim() !== "" && !stdout.includes("compose --pane")) {
    throw new TamqError(
      "ALREADY_EXISTS",
      "key_bound",
      `${wish.key} is bound already: ${stdout.trim().split("\n")[0]}`,
      {
        hint: `choose another key, or first: ${tmux.address.join(" ")} unbind-key -T ${table} ${
          quoted(wish.key)
        }`,
      },
    );
  }
  await tmux.run("bind-key", ...binding(wish));
}

/** A word for tmux's own parser. */
function quoted(word: string): string {
  if (/^[A-Za-z0-9_@%+:,./=-]+$/.test(word) && !word.startsWith("%")) return word;
  return `'${word.replaceAll("'", "'\\''")}'`;
}
