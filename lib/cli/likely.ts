/** What somebody who typed an unknown word probably meant (C-01, E-07). */
import { nearest } from "../model/nearest.ts";
import type { AnyCommand } from "./command.ts";

/** Words of other programs of this kind, and what does that here. */
const ELSEWHERE: Readonly<Record<string, string>> = Object.assign(Object.create(null), {
  version: "tamq --version",
  list: "tamq who (who is live) or tamq history (messages)",
  ls: "tamq who (who is live) or tamq history (messages)",
  ps: "tamq endpoints",
  windows: "tamq endpoints",
  show: "tamq message ID",
  get: "tamq message ID",
  outbox: "tamq history --repo REPO",
  log: "tamq logs (the services'), or tamq history (messages)",
  journal: "tamq logs",
  queue: "tamq history --state pending",
  open: "tamq --command CMD REPO...",
  run: "tamq --command CMD REPO...",
  up: "tamq --command CMD REPO...",
  attach: "tamq --command CMD REPO..., or tmux attach -t =tamq",
  kill: "tamq stop (the service) or tmux kill-window (a window)",
  down: "tamq stop",
  restart: "tamq stop, then tamq serve --detach",
  update: "tamq upgrade (running windows, once a newer version is installed)",
  daemon: "tamq serve --detach",
  health: "tamq status",
  delete: "tamq cancel ID (one that waits) or tamq purge (old ones)",
  rm: "tamq cancel ID (one that waits) or tamq purge (old ones)",
  prune: "tamq purge",
  import: "tamq replay FILE --endpoint ID",
});

/**
 * A hint for an unknown command; `like` holds the names of commands that are spelt nearly so. A
 * `first` word may be meant as a repository.
 */
export function commandHint(word: string, like: readonly string[], first: boolean): string {
  const elsewhere = ELSEWHERE[word];
  if (elsewhere !== undefined) return `try: ${elsewhere}`;
  const open = first ? `; to open a repository's window: tamq --command CMD ${word}` : "";
  return like.length === 0
    ? `see: tamq --help${open}`
    : `did you mean ${like.map((name) => `"${name}"`).join(" or ")}?${open}`;
}

/** Options of `command`, and those of every command, that are spelt nearly like `word`. */
export function likelyOptions(word: string, command: AnyCommand | undefined): string[] {
  const own = Object.entries(command?.parameters.flags ?? {})
    .filter(([, option]) => !option.hidden).map(([name]) => optionName(name));
  const bare = word.replace(/^-+/, "").replace(/=.*$/s, "");
  return nearest(bare, [...own, "help", "version"], 2);
}

/** `tmuxSocket` as it is written on the command line. */
export function optionName(camel: string): string {
  return camel.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`);
}
