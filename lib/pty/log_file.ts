/** Appends log lines to the product's log file; the window itself belongs to the worker (C-05). */

/**
 * Opened anew for each line, of which a broker writes few: the file may have been rotated. Created
 * 0600 in a directory 0700. A log that cannot be written is no reason to disturb a terminal.
 */
export function appendLines(file: string): (line: string) => void {
  const encoder = new TextEncoder();
  return (line) => {
    try {
      Deno.mkdirSync(file.slice(0, file.lastIndexOf("/")), { recursive: true, mode: 0o700 });
      const log = Deno.openSync(file, { append: true, create: true, mode: 0o600 });
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
