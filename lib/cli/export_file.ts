/** The file that an export goes to: made 0600, appended, flushed to the disk. */
import { errorText, TamqError } from "../base/errors.ts";
import { OutputClosed } from "./context.ts";

export interface ExportFile extends Disposable {
  /** Lines without their line feeds. */
  write(lines: readonly string[]): void;
  /** Returns once all is on disk. */
  finish(): void;
}

const encoder = new TextEncoder();

/** Throws `output_failed`, which names the path. */
export function openExportFile(path: string): ExportFile {
  let file: Deno.FsFile | undefined;
  let regular = true;
  const guarded = <T>(work: () => T): T => {
    try {
      return work();
    } catch (cause) {
      if (cause instanceof Deno.errors.BrokenPipe) throw new OutputClosed();
      throw new TamqError(
        "FAILED_PRECONDITION",
        "output_failed",
        `cannot write ${path}: ${errorText(cause)}`,
        { hint: "check the path and the space on its disk, or write somewhere else", cause },
      );
    }
  };
  const writeAll = (bytes: Uint8Array) => {
    for (let at = 0; at < bytes.length;) at += file!.writeSync(bytes.subarray(at));
  };
  guarded(() => {
    regular = isRegular(path);
    // Of a pipe we must not be a reader ourselves.
    file = Deno.openSync(path, { append: true, read: regular, create: true, mode: 0o600 });
    // A line that an earlier export left unfinished must not swallow our first one.
    if (regular && endsInsideLine(file)) writeAll(encoder.encode("\n"));
  });
  return {
    write: (lines) => guarded(() => writeAll(encoder.encode(lines.join("\n") + "\n"))),
    finish: () =>
      guarded(() => {
        if (regular) file!.syncSync();
      }),
    [Symbol.dispose]: () => file!.close(),
  };
}

function isRegular(path: string): boolean {
  try {
    return Deno.statSync(path).isFile;
  } catch (error) {
    if (error instanceof Deno.errors.NotFound) return true;
    throw error;
  }
}

function endsInsideLine(file: Deno.FsFile): boolean {
  const size = file.statSync().size;
  if (size === 0) return false;
  file.seekSync(size - 1, Deno.SeekMode.Start);
  const last = new Uint8Array(1);
  file.readSync(last);
  return last[0] !== 0x0a;
}
