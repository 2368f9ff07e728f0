/** A message that the operator writes beside a window, in a popup of its tmux server (B-03, B-04). */
import * as z from "zod/mini";
import { sendResult, short } from "./schema.ts";

export const composeFields = {
  idempotency_key: short,
  /** The tmux server and the window from which the popup was opened. */
  tmux: z.strictObject({ server_pid: z.int().check(z.positive()), window_id: short }),
  target_repo: short,
  body: z.string(),
};
export const composeResult = z.strictObject({
  ...sendResult.shape,
  /** The repository of that window, whose operator it is from. */
  sender_repo: z.string(),
});
