/** Appends log lines to the product's log file; the window itself belongs to the worker (C-05). */
import { openOwnFile } from "../base/own_file.ts";

/**
 * Opened anew for each line, of which a broker writes few: the file may have been rotated. Created
 * 0600 in a directory 0700. A log that cannot be written, or leads elsewhere through a link, is no
 * reason to disturb a terminal: it then goes without.
 */
export function appendLines(file: string): (line: string) => void {
  const encoder = new TextEncoder();
  return (line) => {
    try {
      Deno.mkdirSync(file.slice(0, file.lastIndexOf("/")), { recursive: true, mode: 0o700 });
      const log = openOwnFile(file, "append");
      try {
        log.writeSync(encoder.encode(line));
      } finally {
        log.close();
      }
    } catch {
      // nowhere to tell it
    }
  };
}
