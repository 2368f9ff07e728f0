/** A log file of bounded size: 0600, appended, older parts kept as `.1` to `.5` (C-05). */
import { openOwnFile } from "./own_file.ts";

/** One part; six of them at most are on disk. */
export const PART_BYTES = 5 << 20;
const KEPT = 5;

export interface LogFile {
  write(line: string): void;
  close(): void;
}

/**
 * Throws `file_unusable` for a link, or what is no file of ours, and what the system says when it
 * cannot be opened. One process writes it.
 */
export function openLogFile(path: string, partBytes = PART_BYTES): LogFile {
  const encoder = new TextEncoder();
  const open = () => openOwnFile(path, "append");
  let file = open();
  let size = file.statSync().size;

  const rotate = () => {
    keepParts(path);
    const next = open();
    file.close();
    file = next;
    size = 0;
  };

  return {
    write(line) {
      const bytes = encoder.encode(line);
      // A log that cannot be written (full disk) must not stop the service: its line is lost.
      try {
        if (size > 0 && size + bytes.length > partBytes) rotate();
        for (let done = 0; done < bytes.length;) done += file.writeSync(bytes.subarray(done));
        size += bytes.length;
      } catch {
        // nowhere to say so
      }
    },
    close: () => file.close(),
  };
}

/** Moves the file and its older parts on by one; the oldest is lost. */
export function keepParts(path: string): void {
  for (let part = KEPT - 1; part >= 0; part--) {
    try {
      Deno.renameSync(part === 0 ? path : `${path}.${part}`, `${path}.${part + 1}`);
    } catch (error) {
      if (!(error instanceof Deno.errors.NotFound)) throw error;
    }
  }
}
