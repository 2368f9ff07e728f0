/** How to talk to a program that no profile knows: one that reads lines. */
export interface Profile {
  readonly name: string;
  /** Milliseconds between the text and Enter when the program edits lines itself. */
  readonly pasteEnterMs: number;
  /** The same without bracketed paste: such editors take a fast Enter for a pasted line break. */
  readonly typedEnterMs: number;
  /** Quiet after the last key of the operator before anything may be injected, milliseconds. */
  readonly operatorQuietMs: number;
  /** The worker is past its start-up after this quiet behind its first output, milliseconds. */
  readonly startupQuietMs: number;
  /** … or after this long without any output, milliseconds. */
  readonly startupMaxMs: number;
}

export const plain: Profile = {
  name: "plain",
  // Measured on four line editors of agents: 50 ms is lost in some tries, 200 ms in none of 20.
  pasteEnterMs: 200,
  typedEnterMs: 200,
  operatorQuietMs: 300,
  startupQuietMs: 50,
  startupMaxMs: 500,
};
