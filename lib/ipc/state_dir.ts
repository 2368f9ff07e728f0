/** The state directory: made for its owner alone, and refused when it cannot serve (C-02, E-06). */
import { errorText, TamqError } from "../base/errors.ts";

/** Creates it 0700 when missing. Throws `state_dir_unusable` or `state_dir_not_ours`. */
export function ensureStateDir(path: string): void {
  let info: Deno.FileInfo;
  try {
    Deno.mkdirSync(path, { recursive: true, mode: 0o700 });
    info = Deno.statSync(path);
  } catch (cause) {
    throw stateDirUnusable(path, cause);
  }
  if (info.uid === Deno.uid()) return;
  throw new TamqError(
    "PERMISSION_DENIED",
    "state_dir_not_ours",
    `the state directory ${path} belongs to user ${info.uid}, not to user ${Deno.uid()}`,
    { hint: "set TAMQ_STATE_DIR to a directory of your own" },
  );
}

/** What keeps us from using a file in it, and what to do about that. */
export function stateDirUnusable(path: string, cause: unknown): TamqError {
  const text = errorText(cause);
  const full = /os error 28\b|No space left/.test(text);
  return new TamqError(
    full ? "RESOURCE_EXHAUSTED" : "FAILED_PRECONDITION",
    full ? "state_dir_full" : "state_dir_unusable",
    `cannot use the state directory: ${path}: ${text}`,
    {
      hint: full
        ? "free some space there, or set TAMQ_STATE_DIR to another directory"
        : "make it a directory that you can write, or set TAMQ_STATE_DIR to another one",
      cause,
    },
  );
}
