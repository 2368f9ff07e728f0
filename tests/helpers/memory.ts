/** The most memory that a process had resident while it ran. */
import { pause, systemClock } from "../../lib/base/clock.ts";

/** Megabytes; undefined when the process is gone. The kernel keeps the peak. */
export function peakMegabytes(pid: number): number | undefined {
  try {
    const kb = /^VmHWM:\s+(\d+) kB$/m.exec(Deno.readTextFileSync(`/proc/${pid}/status`))?.[1];
    return kb === undefined ? undefined : Number(kb) / 1024;
  } catch {
    return undefined;
  }
}

export interface Measured {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
  readonly peak: number;
  readonly ms: number;
}

/** Runs a process to its end and watches its memory. */
export async function measured(
  argv: readonly string[],
  env: Record<string, string>,
): Promise<Measured> {
  const began = systemClock.monotonic();
  const [program, ...args] = argv;
  const child = new Deno.Command(program!, {
    args,
    env,
    stdin: "null",
    stdout: "piped",
    stderr: "piped",
  }).spawn();
  let over = false;
  const output = child.output().finally(() => over = true);
  let peak = 0;
  while (!over) {
    peak = Math.max(peak, peakMegabytes(child.pid) ?? 0);
    await pause(systemClock, 5);
  }
  const { code, stdout, stderr } = await output;
  const text = (bytes: Uint8Array) => new TextDecoder().decode(bytes);
  const ms = systemClock.monotonic() - began;
  return { code, stdout: text(stdout), stderr: text(stderr), peak, ms };
}
