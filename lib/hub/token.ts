/** The token of `--tcp`, in a file that only its user can read (K-16, K-19). */
import { errorText, TamqError } from "../base/errors.ts";
import { hex } from "../base/ids.ts";
import type { Random } from "../base/random.ts";

const FORM = /^[\x21-\x7e]{32,512}$/;

/** The token; throws `token_unreadable` for a file that is absent, no file, or open to others. */
export function readToken(path: string): string {
  const fail = (why: string, hint: string, cause?: unknown): never => {
    throw new TamqError("FAILED_PRECONDITION", "token_unreadable", `${path}: ${why}`, {
      hint,
      cause,
    });
  };
  let file: Deno.FsFile;
  try {
    file = Deno.openSync(path, { read: true });
  } catch (cause) {
    return fail(errorText(cause), "it is made by: tamq hub serve --tcp", cause);
  }
  using _open = file;
  // The opened file is looked at, not its name: the two could differ by then.
  const { mode, uid, isFile, size } = file.statSync();
  if (!isFile) return fail("not a file", "move it away; a new one is made at the next start");
  if (uid !== Deno.uid() || ((mode ?? 0) & 0o077) !== 0) {
    return fail("other users can read or change it", `make a new one: rm ${path}`);
  }
  if (size > 1024) return fail("it is too long", "one line of 32 to 512 characters is allowed");
  const bytes = new Uint8Array(1024);
  const token = new TextDecoder().decode(bytes.subarray(0, file.readSync(bytes) ?? 0)).trim();
  if (!FORM.test(token)) return fail("it holds no token", `make a new one: rm ${path}`);
  return token;
}

/** The token of the file, which is made with 256 random bits when it is absent. */
export function ensureToken(path: string, random: Random): string {
  try {
    using file = Deno.openSync(path, { write: true, createNew: true, mode: 0o600 });
    const bytes = new TextEncoder().encode(hex(random.bytes(32)) + "\n");
    for (let at = 0; at < bytes.length;) at += file.writeSync(bytes.subarray(at));
    file.syncSync();
  } catch (error) {
    if (!(error instanceof Deno.errors.AlreadyExists)) {
      throw new TamqError(
        "FAILED_PRECONDITION",
        "token_unreadable",
        `${path}: ${errorText(error)}`,
        { hint: "check the state directory", cause: error },
      );
    }
  }
  return readToken(path);
}
