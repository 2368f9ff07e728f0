/** What every bench prints with. */

export function median(values: readonly number[]): number {
  return values.toSorted((a, b) => a - b)[values.length >> 1] ?? NaN;
}

/** The value below which `share` of the values lie. */
export function percentile(values: readonly number[], share: number): number {
  const sorted = values.toSorted((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? NaN;
}

/** Whether a figure holds what it should; a noisy machine may say no, so it is only printed. */
export function verdict(holds: boolean, goal: string): string {
  return `${holds ? "holds" : "MISSED"}: ${goal}`;
}

/** CPU time of all threads of a process, as the scheduler gave it, and their context switches. */
export function processUsage(pid: number): { switches: number; ms: number } {
  let switches = 0;
  let ms = 0;
  for (const { name } of Deno.readDirSync(`/proc/${pid}/task`)) {
    const status = Deno.readTextFileSync(`/proc/${pid}/task/${name}/status`);
    for (const [, count] of status.matchAll(/ctxt_switches:\s+(\d+)/g)) switches += Number(count);
    ms += Number(Deno.readTextFileSync(`/proc/${pid}/task/${name}/schedstat`).split(" ")[0]) / 1e6;
  }
  return { switches, ms };
}

/** Put before a command: every fsync takes that much longer. Empty without a working strace. */
export async function slowSync(ms: number): Promise<string[]> {
  // With --seccomp-bpf only the syncs stop for the tracer: all else runs at its own speed.
  const prefix = ["strace", "-f", "-qq", "--seccomp-bpf", "-o", "/dev/null", "-e", "trace=fsync"]
    .concat("-e", `inject=fsync:delay_exit=${ms * 1000}`);
  try {
    const [program, ...args] = [...prefix, "true"];
    const { success } = await new Deno.Command(program!, { args, stderr: "null" }).output();
    return success ? prefix : [];
  } catch {
    return [];
  }
}
