/** Turns this process, started by root, into one of another user, as `su` would. */

/** A user that owns nothing here. */
export const NOBODY = 65534;

const PR_SET_DUMPABLE = 4;

/** All threads change: glibc's calls see to that. Afterwards there is no way back. */
export function becomeUser(uid: number): void {
  const libc = Deno.dlopen("libc.so.6", {
    setgroups: { parameters: ["usize", "pointer"], result: "i32" },
    setresgid: { parameters: ["u32", "u32", "u32"], result: "i32" },
    setresuid: { parameters: ["u32", "u32", "u32"], result: "i32" },
    prctl: { parameters: ["i32", "u64", "u64", "u64", "u64"], result: "i32" },
  });
  const failed = libc.symbols.setgroups(0n, null) !== 0 ||
    libc.symbols.setresgid(uid, uid, uid) !== 0 || libc.symbols.setresuid(uid, uid, uid) !== 0;
  if (failed || Deno.uid() !== uid) throw new Error(`cannot become user ${uid}`);
  // A change of user hides /proc/self from the process itself until the next exec; undo that.
  libc.symbols.prctl(PR_SET_DUMPABLE, 1n, 0n, 0n, 0n);
}
