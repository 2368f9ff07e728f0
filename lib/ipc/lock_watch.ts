/**
 * Tells when another service of this user comes, goes or is replaced: whoever holds the lock of a
 * state directory writes its text (see `lock.ts`), and the kernel reports the write. Costs nothing
 * while nothing happens.
 */
import { errorText } from "../base/errors.ts";
import { ensureStateDir } from "./state_dir.ts";

export class LockWatch {
  readonly #stateDir: string;
  readonly #changed: () => void;
  #watcher: Deno.FsWatcher | undefined;
  #reading: Promise<void> = Promise.resolve();

  /**
   * `changed` is called after every write of the text, perhaps in the middle of one (another call
   * follows then), and when the directory is gone: {@link arm} again.
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
    try {
      for await (const event of watcher) {
        // Reading the file is an event as well: answering those would never end.
        if (event.kind === "access") continue;
        const itself = event.paths.some((path) => path === this.#stateDir);
        if (itself && event.kind === "remove") break; // removed or moved away: another may follow
        // With a flag events were lost: it may have been any.
        const ours = event.flag !== undefined ||
          event.paths.some((path) => path.endsWith("/service.lock"));
        if (ours || itself) this.#changed();
      }
    } catch {
      // watching is over, whatever the reason
    }
    if (this.#watcher !== watcher) return; // closed by us
    this.#watcher = undefined;
    watcher.close();
    this.#changed();
  }
}
