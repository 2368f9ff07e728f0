/** Has the program in the foreground paint its screen, or a shell its prompt, again. */
import { type Clock, pause, within } from "../base/clock.ts";
import { getSize, type TerminalSize } from "../pty_ffi.ts";
import type { ModeTracker } from "./modes.ts";
import type { PromptRow } from "./prompt_row.ts";
import type { Relay } from "./relay.ts";
import type { Session } from "./session.ts";

/** How long a program may take to notice a window change, milliseconds; usually it takes one. */
const REDRAW_MS = 50;

export interface RedrawOptions {
  readonly session: Session;
  readonly clock: Clock;
  readonly relay: Relay;
  readonly row: PromptRow;
  readonly modes: ModeTracker;
  /** Resolves at the next output. */
  readonly output: Promise<boolean>;
}

/**
 * Most shells paint their prompt again when their window changed – readline only when the size
 * really did, so a signal alone is not enough: one row less, then the true size. For a shell that
 * does not, its row is painted again as it was.
 */
export async function redrawPrompt(options: RedrawOptions): Promise<void> {
  const { session, clock, relay, modes } = options;
  const size = getSize(session.master);
  if (size === undefined) return;
  const row = options.row.bytes();
  session.resize(oneRowLess(size));
  const painted = await within(clock, REDRAW_MS, options.output, () => false);
  relay.resize();
  if (painted || row === undefined || !modes.settled) return;
  modes.lineStart = false;
  await relay.sendTerminal(row, REDRAW_MS);
}

/** A window change has an agent paint its screen whole; `resized` is told of each size. */
export async function repaintScreen(
  session: Session,
  clock: Clock,
  relay: Relay,
  resized: (size: TerminalSize) => void,
): Promise<void> {
  const size = getSize(session.master);
  if (size === undefined) return;
  const less = oneRowLess(size);
  session.resize(less);
  resized(less);
  await pause(clock, REDRAW_MS);
  relay.resize();
}

function oneRowLess(size: TerminalSize): TerminalSize {
  return { ...size, rows: size.rows > 1 ? size.rows - 1 : 2 };
}
