/** The state directory: made for its owner alone, and refused when it cannot serve (C-02, E-06). */
import { errorText, TamqError } from "../base/errors.ts";

/** One of these in a directory, or nothing at all, tells that it is ours alone. */
const OUR_FILES = [
  "tamq.sqlite3",
  "hub.sqlite3",
  "coord.sqlite3",
  "service.lock",
  "start.lock",
  "open.lock",
  "spool",
  "recordings",
  "captures",
];

/**
 * Creates it 0700 when missing. One of ours that others may enter (a backup was restored, a umask
 * undone) is made 0700 again; then the text that is returned says so. Throws `state_dir_unusable`,
 * `state_dir_not_ours`, or `state_dir_open` for a directory with other things in it: whose mode that
 * is, is not for us to decide.
 */
export function ensureStateDir(path: string): string | undefined {
  let info: Deno.FileInfo;
  try {
    Deno.mkdirSync(path, { recursive: true, mode: 0o700 });
    info = Deno.statSync(path);
  } catch (cause) {
    throw stateDirUnusable(path, cause);
  }
  if (info.uid !== Deno.uid()) {
    throw new TamqError(
      "PERMISSION_DENIED",
      "state_dir_not_ours",
      `the state directory ${path} belongs to user ${info.uid}, not to user ${Deno.uid()}`,
      { hint: "set TAMQ_STATE_DIR to a directory of your own" },
    );
  }
  const mode = (info.mode ?? 0) & 0o7777;
  if ((mode & 0o077) === 0) return undefined;
  const was = `mode ${mode.toString(8).padStart(4, "0")}`;
  if (!isOurs(path)) {
    throw new TamqError(
      "PERMISSION_DENIED",
      "state_dir_open",
      `the state directory ${path} is open to others (${was}) and holds other things`,
      {
        hint: `set TAMQ_STATE_DIR to a directory of its own, or close this one: chmod 700 ${path}`,
      },
    );
  }
  try {
    Deno.chmodSync(path, 0o700);
  } catch (cause) {
    throw stateDirUnusable(path, cause);
  }
  return `the state directory ${path} was open to others (${was}); it is 0700 now`;
}

function isOurs(path: string): boolean {
  try {
    const names = [...Deno.readDirSync(path)].map((entry) => entry.name);
    return names.length === 0 || names.some((name) => OUR_FILES.includes(name));
  } catch (cause) {
    throw stateDirUnusable(path, cause);
  }
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
