/** Opens files that are written where a link could lead the writing elsewhere (C-02). */
import { TamqError } from "./errors.ts";

/**
 * The regular file of ours at `path`, opened for appending or for reading and writing; made 0600
 * when missing. Nothing is followed, made or changed through a symbolic link. Throws
 * `file_unusable` for everything else that is there, and what the system says.
 */
export function openOwnFile(path: string, access: "append" | "read-write"): Deno.FsFile {
  const options = access === "append" ? { append: true } : { read: true, write: true };
  for (;;) {
    try {
      // The runtime has no O_NOFOLLOW, but O_EXCL does not follow either.
      return Deno.openSync(path, { ...options, write: true, createNew: true, mode: 0o600 });
    } catch (error) {
      if (!(error instanceof Deno.errors.AlreadyExists)) throw error;
    }
    try {
      const seen = Deno.lstatSync(path);
      refuse(path, seen);
      const file = Deno.openSync(path, options);
      const opened = file.statSync();
      if (opened.dev === seen.dev && opened.ino === seen.ino) return file;
      file.close(); // replaced between the two looks
    } catch (error) {
      if (!(error instanceof Deno.errors.NotFound)) throw error; // else removed between them
    }
  }
}

function refuse(path: string, info: Deno.FileInfo): void {
  const what = info.isSymlink
    ? "is a symbolic link"
    : !info.isFile
    ? "is not a regular file"
    : info.uid !== Deno.uid()
    ? `belongs to user ${info.uid}, not to user ${Deno.uid()}`
    : undefined;
  if (what === undefined) return;
  throw new TamqError("FAILED_PRECONDITION", "file_unusable", `${path} ${what}`, {
    hint: "move it away; a file of your own is made in its place",
  });
}
