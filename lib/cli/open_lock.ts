/** One `tamq start` at a time, so that two never open the same repository twice (E-05). */
import { TamqError } from "../base/errors.ts";
import { openOwnFile } from "../base/own_file.ts";
import { ensureStateDir, stateDirUnusable } from "../ipc/state_dir.ts";

/** Runs `work` while holding the lock; the kernel frees it with the process. */
export async function withOpenLock<T>(stateDir: string, work: () => Promise<T>): Promise<T> {
  ensureStateDir(stateDir);
  let file: Deno.FsFile;
  try {
    file = openOwnFile(`${stateDir}/open.lock`, "read-write");
  } catch (cause) {
    if (cause instanceof TamqError) throw cause;
    throw stateDirUnusable(stateDir, cause);
  }
  try {
    await file.lock(true);
    return await work();
  } finally {
    file.close();
  }
}
