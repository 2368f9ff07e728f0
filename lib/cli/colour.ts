/** Colour for people at terminals: `--color`, `NO_COLOR`, and what stays plain (C-01). */
import type { CliContext } from "./context.ts";
import type { ColorChoice } from "./parameters.ts";

export interface ColorFlag {
  readonly color?: ColorChoice;
}

const CODES = { red: 31, green: 32, yellow: 33, dim: 2, bold: 1 } as const;
export type Style = keyof typeof CODES;

/** Dresses a text that is already safe to print; the texts between may hold no escape of their own. */
export type Paint = (style: Style | undefined, text: string) => string;

export const plain: Paint = (_style, text) => text;

/**
 * An explicit choice wins; else colour is for a terminal alone, and not where `NO_COLOR` is set
 * (no-color.org: to anything but the empty text) or `TERM` is `dumb`.
 */
export function paintFor(
  context: Pick<CliContext, "env" | "stdoutIsTerminal">,
  choice: ColorChoice = "auto",
): Paint {
  const wanted = choice === "always" ||
    (choice === "auto" && context.stdoutIsTerminal() && !context.env("NO_COLOR") &&
      context.env("TERM") !== "dumb");
  if (!wanted) return plain;
  return (style, text) =>
    style === undefined || text === "" ? text : `\u001b[${CODES[style]}m${text}\u001b[0m`;
}
