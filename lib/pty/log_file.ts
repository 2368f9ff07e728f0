/** Appends log lines to the product's log file; the window itself belongs to the worker (C-05). */
import { keepParts, PART_BYTES } from "../base/log_file.ts";
import { openOwnFile } from "../base/own_file.ts";

/**
 * Opened anew for each line, of which a broker writes few: the file may have been rotated. Created
 * 0600 in a directory 0700. A log that cannot be written, or leads elsewhere through a link, is no
 * reason to disturb a terminal: it then goes without. A full part is moved on by whichever window
 * finds it, the service writes its own lines to the part that it has open.
 */
export function appendLines(file: string, partBytes = PART_BYTES): (line: string) => void {
  const encoder = new TextEncoder();
  return (line) => {
    try {
      Deno.mkdirSync(file.slice(0, file.lastIndexOf("/")), { recursive: true, mode: 0o700 });
      const bytes = encoder.encode(line);
      let log = openOwnFile(file, "append");
      try {
        const { size } = log.statSync();
        if (size > 0 && size + bytes.length > partBytes) {
          moveOn(log, file);
          log.close();
          log = openOwnFile(file, "append");
        }
        log.writeSync(bytes);
      } finally {
        log.close();
      }
    } catch {
      // nowhere to tell it
    }
  };
}

/** Moves a full part on, once: of several windows the first to have its lock. */
function moveOn(log: Deno.FsFile, file: string): void {
  if (!log.tryLockSync(true)) return; // somebody else is at it
  const opened = log.statSync(), now = Deno.lstatSync(file);
  if (opened.ino === now.ino && opened.dev === now.dev) keepParts(file);
}
