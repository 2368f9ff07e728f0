/** The editor's part of `tamq send`: template, what counts as nothing, what is kept. */
import { TamqError } from "../base/errors.ts";
import { loadSettings } from "../config.ts";
import { gitaRegistry } from "../gita.ts";
import type { CliContext } from "./context.ts";
import { writeInEditor } from "./editor.ts";

export interface WrittenMessage {
  readonly text: string;
  discard(): void;
  /** The failure with a word on where the text lies now. */
  kept(error: unknown): unknown;
}

/** Throws `text_empty` when nothing was written, and what {@link writeInEditor} throws. */
export async function writeMessage(
  context: CliContext,
  to: string | undefined,
  text: string | undefined,
): Promise<WrittenMessage> {
  const settings = await loadSettings(context.env);
  const beginning = text ?? (to === undefined ? "To:" : "");
  const draft = await writeInEditor(
    context,
    `${settings.stateDir}/drafts`,
    beginning,
    to === undefined
      ? [
        "Write To:REPO: and the message behind it, on as many lines as you like.",
        "This line and all below it are not sent; without a text nothing is.",
        ...repositories(context),
      ]
      : [
        `Write the message to ${to} above, on as many lines as you like.`,
        "This line and all below it are not sent; without a text nothing is.",
      ],
  );
  if (isNothing(draft.text, to)) {
    draft.discard();
    throw new TamqError(
      "FAILED_PRECONDITION",
      "text_empty",
      "no text was written; nothing was sent",
    );
  }
  return {
    text: draft.text,
    discard: draft.discard,
    kept(error) {
      if (!(error instanceof TamqError)) return error;
      const more = `your text is in ${draft.path}` +
        (error.hint?.includes("--key") ? "" : `: tamq send ${to ? `--to ${to} ` : ""}--file FILE`);
      const hint = error.hint === undefined ? more : `${error.hint}; ${more}`;
      return new TamqError(error.code, error.reason, error.message, { hint, cause: error });
    },
  };
}

function isNothing(text: string, to: string | undefined): boolean {
  if (text.trim() === "") return true;
  return to === undefined && /^To:[^\n]*$/.test(text) && /^To:(?:[^:\n]*:?)?\s*$/.test(text);
}

const MOST_NAMES = 40;

function repositories(context: CliContext): string[] {
  try {
    const names = gitaRegistry(context.env).names();
    const more = names.length > MOST_NAMES ? `, and ${names.length - MOST_NAMES} more` : "";
    return [`Repositories: ${names.slice(0, MOST_NAMES).join(", ")}${more}`];
  } catch {
    return []; // the service says what is wrong with it
  }
}
