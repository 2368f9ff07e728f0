/**
 * Whether what reads the worker's terminal would take typed text now (B-16). Text that nobody waits
 * for stays in the kernel's buffer, and whatever reads next takes it: a shell, perhaps. Keys for a
 * program that reads them one by one are commands: `!` in a pager.
 */
import type { ProcessInfo } from "../base/proc.ts";
import { executable, hasLoaded, waitsForInput } from "../base/proc_wait.ts";
import type { Termios } from "../pty_ffi.ts";
import type { Foreground } from "./foreground.ts";

/** `wait` names the waits that were seen; see {@link waitsForInput}. */
export type Readiness = { readonly wait: string } | { readonly reason: string };

export interface ReaderView {
  readonly front: Foreground;
  /** Path of the worker's terminal. */
  readonly terminal: string;
  readonly termios: Termios | undefined;
  readonly bracketedPaste: boolean;
  /** The cursor is hidden, as menus do. */
  readonly cursorHidden: boolean;
  /** Bytes of complete lines that the program has not taken yet. */
  readonly unread: number;
}

/** They edit lines with an editor of their own; others load readline. */
const LINE_EDITORS = /\/(?:node|nodejs|bash)(?:[-.]?\d[\d.]*)?$/;
const READLINE = /\/(?:lib)?readline[.-]\S*so|\/libreadline\.so/;

/** `not_reading`, `reader_unseen` or `raw_reader` while nothing may be typed. */
export function readiness(view: ReaderView): Readiness {
  const { front, terminal, termios } = view;
  const isTerminal = (link: string) => link === terminal || link === "/dev/tty";
  const keys = termios !== undefined && !termios.canonical && !view.bracketedPaste;
  let unseen = false;
  const waits: string[] = [];
  const editors: boolean[] = [];
  for (const process of front.members) {
    const found = waitsForInput(process.pid, isTerminal);
    if (found.kind === "unseen") unseen = true;
    if (found.kind !== "reading") continue;
    waits.push(found.wait);
    if (keys) editors.push(found.call === "poll" && editsLines(process));
  }
  if (waits.length === 0) return { reason: unseen ? "reader_unseen" : "not_reading" };
  // Lines of before are taken first; they may end the program.
  if (view.unread > 0) return { reason: "not_reading" };
  if (termios === undefined) return { reason: "terminal_gone" };
  if (keys && (view.cursorHidden || editors.includes(false))) return { reason: "raw_reader" };
  return { wait: waits.join(" ") };
}

/**
 * Readline and node's line editor wait for several things at once; a program that takes single keys
 * (`more`, `read -n 1`) mostly does not, and has no line editor.
 */
function editsLines({ pid }: ProcessInfo): boolean {
  return LINE_EDITORS.test(executable(pid) ?? "") || hasLoaded(pid, READLINE);
}
