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
