/**
 * What a broker hands to the program that its process becomes (B-17): written into memory that no
 * other process can name, and read again by its descriptor. Terminal and worker are told by the
 * command line as well: with them alone, in any case, the terminal goes on.
 */
import { errorText, TamqError } from "./base/errors.ts";
import { becomeProgram, keepOpen, openMemory } from "./exec_ffi.ts";
import type { KeptAgent } from "./pty/agent.ts";
import type { KeptLink } from "./pty/link.ts";
import type { KeptSpool } from "./pty/spool.ts";
import type { KeptWindow } from "./pty/window.ts";
import { closeFd } from "./pty_ffi.ts";

/**
 * Counts changes to what {@link Handover} and its parts mean. A program is asked which ones it reads
 * before anybody becomes it.
 */
export const HANDOVER_FORMAT = 1;

/** The formats that this program goes on from. */
export const HANDOVER_FORMATS: readonly number[] = [HANDOVER_FORMAT];

/** Descriptors are those of the process, which stays the same. */
export interface KeptWorker {
  readonly pid: number;
  readonly master: number;
  readonly slave: number;
}

export interface Handover {
  readonly format: number;
  /** Of the program that wrote it. */
  readonly version: string;
  readonly worker: KeptWorker;
  /** Line settings of the outer terminal, to be restored at the end; null: it is no terminal. */
  readonly termios: readonly number[] | null;
  /** How often this process became another program, this time counted. */
  readonly upgrades: number;
  /** As the worker was started, with what its profile added. */
  readonly command: readonly string[];
  readonly profile: string;
  readonly tmux: {
    readonly server_pid: number;
    readonly session: string;
    readonly session_id?: string;
    readonly window_id: string;
    readonly pane_id: string;
  };
  readonly instance: string;
  readonly window: Omit<KeptWindow, "agent"> & { readonly agent: KeptAgent | null };
  readonly link: KeptLink;
  readonly spool: KeptSpool;
}

/** What stands behind `--handover`: memory, and what is needed at the least. */
export function handoverWord(memory: number, { pid, master, slave }: KeptWorker): string {
  return [memory, pid, master, slave].join(",");
}

/** Throws `handover_invalid`. */
export function parseHandoverWord(word: string): { memory: number; worker: KeptWorker } {
  const numbers = /^\d{1,9}(?:,\d{1,9}){3}$/.test(word) ? word.split(",").map(Number) : [];
  const [memory, pid, master, slave] = numbers;
  if (memory === undefined || pid === undefined || master === undefined || slave === undefined) {
    throw new TamqError(
      "INVALID_ARGUMENT",
      "handover_invalid",
      "--handover is what a broker gives to its next program",
      { hint: "to bring windows up to date, run: tamq upgrade" },
    );
  }
  return { memory, worker: { pid, master, slave } };
}

/**
 * This process becomes `argv`, told by its `--handover`; returns only when that failed, by throwing,
 * and then nothing has changed.
 */
export function handOver(
  state: Handover,
  argvFor: (word: string) => readonly string[],
  env: Readonly<Record<string, string>>,
): never {
  const { worker, spool } = state;
  const kept = [worker.master, worker.slave, ...spool.lock === null ? [] : [spool.lock]];
  const memory = openMemory();
  try {
    Deno.writeFileSync(`/proc/self/fd/${memory}`, new TextEncoder().encode(JSON.stringify(state)));
    for (const fd of kept) keepOpen(fd, true);
    becomeProgram(argvFor(handoverWord(memory, worker)), env);
  } catch (error) {
    for (const fd of kept) keepOpen(fd, false);
    closeFd(memory);
    throw error;
  }
}

/**
 * Takes what {@link handOver} left; the descriptors are closed by the next program's start unless
 * they are handed on again. The state is a text on why there is none when it cannot be used.
 */
export function takeOver(word: string): { worker: KeptWorker; state: Handover | string } {
  const { memory, worker } = parseHandoverWord(word);
  keepOpen(worker.master, false);
  keepOpen(worker.slave, false);
  try {
    const state = JSON.parse(Deno.readTextFileSync(`/proc/self/fd/${memory}`)) as Handover;
    closeFd(memory);
    if (!HANDOVER_FORMATS.includes(state.format)) {
      return { worker, state: `format ${state.format} of what was handed over is not known here` };
    }
    if (state.spool.lock !== null) keepOpen(state.spool.lock, false);
    return { worker, state };
  } catch (error) {
    return { worker, state: errorText(error) };
  }
}
