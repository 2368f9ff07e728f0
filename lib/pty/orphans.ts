/**
 * Keeps what a worker starts and forgets below the broker (B-04, T-27): a daemon that left its parent
 * and its session would otherwise hang under pid 1 and look like a program of the operator.
 */
import { endedOrphans } from "../base/proc.ts";
import { becomeSubreaper, reap } from "../pty_ffi.ts";

/**
 * Call before the worker starts: orphans of this process's descendants become its children. They
 * live on when the broker ends, as after any closed terminal.
 */
export function adoptOrphans(): void {
  becomeSubreaper(true);
}

/** Collects the ends of adopted orphans, never the worker's own; returns what stops it. */
export function collectOrphans(workerPid: number): () => void {
  const collect = () => {
    for (const pid of endedOrphans()) {
      if (pid !== workerPid) reap(pid);
    }
  };
  Deno.addSignalListener("SIGCHLD", collect);
  collect(); // the program that this process was before may have been told of some
  return () => {
    Deno.removeSignalListener("SIGCHLD", collect);
    becomeSubreaper(false);
  };
}
