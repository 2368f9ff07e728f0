/**
 * Tells when another service of this user comes, goes or is replaced: whoever holds the lock of a
 * state directory writes its text (see `lock.ts`), and the kernel reports the write. Costs nothing
 * while nothing happens.
 */
import { errorText } from "../base/errors.ts";
import { ensureStateDir } from "./state_dir.ts";

/**
 * So many events wait at most for us to read them. Older runtimes (seen with Deno 2.7.11) drop what
 * comes beyond without a word: after so many of other files, ours may be among the lost.
 */
const KEPT = 16;

export class LockWatch {
  readonly #stateDir: string;
  readonly #changed: () => void;
  #watcher: Deno.FsWatcher | undefined;
  #reading: Promise<void> = Promise.resolve();

  /**
   * `changed` is called after every write of the text, perhaps in the middle of one (another call
   * follows then) or without any, and when the directory is gone: {@link arm} again.
   */
  constructor(stateDir: string, changed: () => void) {
    this.#stateDir = stateDir;
    this.#changed = changed;
  }

  /**
   * Watches from now on; the directory is made when it is missing, so that there is something to
   * watch. Returns why that is impossible (a full disk, the kernel's limit of watches), else
   * undefined. Nothing is reported of what was before: look once after the call.
   */
  arm(): string | undefined {
    if (this.#watcher !== undefined) return undefined;
    try {
      ensureStateDir(this.#stateDir);
      const watcher = Deno.watchFs(this.#stateDir, { recursive: false });
      this.#watcher = watcher;
      this.#reading = this.#read(watcher);
      return undefined;
    } catch (error) {
      return errorText(error);
    }
  }

  async close(): Promise<void> {
    const watcher = this.#watcher;
    this.#watcher = undefined;
    watcher?.close();
    await this.#reading;
  }

  async #read(watcher: Deno.FsWatcher): Promise<void> {
    let others = 0;
    try {
      for await (const event of watcher) {
        const itself = event.paths.some((path) => path === this.#stateDir);
        if (itself && event.kind === "remove") break; // removed or moved away: another may follow
        // An access is no change; and were our own look at the file reported as one, answering it
        // would never end. That events were lost is reported as an event of the directory.
        const ours = event.kind !== "access" &&
          event.paths.some((path) => path.endsWith("/service.lock"));
        if (!ours && !itself && ++others < KEPT) continue;
        others = 0;
        this.#changed();
      }
    } catch {
      // watching is over, whatever the reason
    }
    if (this.#watcher !== watcher) return; // closed by us
    this.#watcher = undefined;
    try {
      watcher.close();
    } catch {
      // leaving the loop has closed it; older runtimes say so
    }
    this.#changed();
  }
}
