/** What observers have to say, in words for the operator. */
import type { ScreenNotice } from "./screen.ts";

/** Why a text was not sent, by reason. */
export const REFUSAL_TEXTS: Readonly<Record<string, string>> = {
  body_empty: "the text is empty",
  body_too_large: "the text is over 8192 bytes; put it in a file and send its path",
  body_binary: "the text holds control characters",
  body_not_utf8: "the text is not valid UTF-8",
  observation_ambiguous: "it may be a repaint or half a message; certain is: tamq send",
  repeats_delivery: "it repeats a part of what was just delivered; if it is meant: tamq send",
  painted: "a program that paints the screen itself printed it; if it is meant: tamq send",
  file_dump: "it looks like a file that was shown; if it is meant: tamq send",
};

/** A notice of the screen observer that is about no message in particular. */
export function screenNoticeText(notice: Exclude<ScreenNotice, { target: string }>): string {
  return notice.kind === "gap"
    ? "output could not be read (too fast, or unknown sequences): messages in it were NOT sent; certain is: tamq send"
    : "this program has taken the alternate screen: messages in long answers may be missed";
}
