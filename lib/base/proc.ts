/** Facts about processes, read from /proc; the only place that parses it. Every call is synchronous. */

/** A process that cannot be mistaken for a later one with the same pid. */
export interface ProcessIdentity {
  readonly pid: number;
  /** Boot id and start time in clock ticks since that boot. */
  readonly start: string;
}

interface Stat {
  readonly command: string;
  readonly state: string;
  readonly ppid: number;
  readonly pgrp: number;
  readonly session: number;
  readonly tty: number;
  /** Ticks of the machine's clock (since its start, sleep included) when it was started. */
  readonly startTicks: string;
}

let bootId: string | undefined;

function readText(path: string): string | undefined {
  try {
    return Deno.readTextFileSync(path);
  } catch {
    return undefined; // gone, or another user's: the caller treats both as "cannot be vouched for"
  }
}

function readStat(pid: number): Stat | undefined {
  const text = readText(`/proc/${pid}/stat`);
  if (text === undefined) return undefined;
  // The command may hold spaces and parentheses: fields count from the last ")".
  const open = text.indexOf("(");
  const close = text.lastIndexOf(")");
  const fields = text.slice(close + 2).split(" ");
  if (open < 0 || close < 0 || fields.length < 20) return undefined;
  return {
    command: text.slice(open + 1, close),
    state: fields[0]!,
    ppid: Number(fields[1]),
    pgrp: Number(fields[2]),
    session: Number(fields[3]),
    tty: Number(fields[4]),
    startTicks: fields[19]!,
  };
}

/** Undefined when no such process lives; a zombie counts as gone. */
export function identify(pid: number): ProcessIdentity | undefined {
  const stat = readStat(pid);
  if (stat === undefined || stat.state === "Z" || stat.state === "X") return undefined;
  bootId ??= readText("/proc/sys/kernel/random/boot_id")?.trim() ?? "unknown";
  return { pid, start: `${bootId}:${stat.startTicks}` };
}

/** True while that very process lives. */
export function isAlive(process: ProcessIdentity): boolean {
  return identify(process.pid)?.start === process.start;
}

/**
 * `pid`, its ancestors, nearest first, then the leaders of their sessions with their ancestors: a
 * background job whose parent has ended hangs under pid 1, but stays in the session of its terminal.
 * Without pid 1. (A session's number is not given to another process while it has a member.)
 *
 * Empty for a process that is gone, and for one that was started after `tick` (of the machine's
 * clock, see `Stat.startTicks`): whoever had the number then has ended, and it was given again.
 */
export function ancestry(pid: number, tick = Infinity): number[] {
  for (let again = 0; again < 3; again++) {
    const chain: number[] = [];
    const sessions = new Set<number>();
    const traced = climb(pid, tick, chain, sessions) &&
      [...sessions].every((leader) => climb(leader, Infinity, chain, sessions));
    // Fails closed: who hides behind a long chain is nobody.
    if (traced) return chain.length < MAX_ANCESTRY ? chain : [];
  }
  return []; // nor is one whose ancestors end faster than they can be read
}

/** Far above any real depth; bounds the work that a hostile chain of processes can cause. */
const MAX_ANCESTRY = 256;

/**
 * Adds `from` and its ancestors to `chain`, their sessions to `sessions`. False when one of them
 * ended meanwhile: the one below it has got another parent then, under which it must be looked for.
 */
function climb(from: number, tick: number, chain: number[], sessions: Set<number>): boolean {
  let latest = tick;
  for (let next = from; next > 1 && chain.length < MAX_ANCESTRY && !chain.includes(next);) {
    const stat = readStat(next);
    const start = Number(stat?.startTicks);
    // None is started before its parent, or before whoever adopted it.
    const gone = stat === undefined || start > latest;
    if (gone && next !== from) return false;
    if (!gone || chain.length > 0) chain.push(next); // a session may outlive its leader
    if (gone) break;
    if (stat.session > 1) sessions.add(stat.session);
    latest = start;
    next = stat.ppid;
  }
  return true;
}

export interface ProcessInfo {
  readonly pid: number;
  readonly pgrp: number;
  readonly session: number;
  /** Device number of its controlling terminal; 0 for none. */
  readonly tty: number;
  /** Kernel's name of the program, at most 15 bytes. */
  readonly command: string;
  readonly argv: readonly string[];
}

export function describe(pid: number): ProcessInfo | undefined {
  const stat = readStat(pid);
  if (stat === undefined || stat.state === "Z" || stat.state === "X") return undefined;
  const argv = (readText(`/proc/${pid}/cmdline`) ?? "").split("\0");
  if (argv.at(-1) === "") argv.pop();
  const { pgrp, session, tty, command } = stat;
  return { pid, pgrp, session, tty, command, argv };
}

/** `root` and its living descendants, at most `limit`. */
export function descendants(root: number, limit = 256): number[] {
  const found: number[] = [root];
  for (let i = 0; i < found.length && found.length < limit; i++) {
    for (const child of childrenOf(found[i]!)) {
      if (found.length < limit) found.push(child);
    }
  }
  return found;
}

/** Children of a process, ended ones included. */
export function childrenOf(pid: number): number[] {
  // They are listed under the thread that started them.
  return threads(pid).flatMap((thread) => {
    const children = readText(`/proc/${pid}/task/${thread}/children`) ?? "";
    return children.split(" ").filter((word) => word !== "").map(Number);
  });
}

function threads(pid: number): string[] {
  try {
    return Array.from(Deno.readDirSync(`/proc/${pid}/task`), (entry) => entry.name);
  } catch {
    return []; // gone
  }
}

/**
 * Children of this process that have ended in another session than its own: orphans that were
 * handed to it. Children that the runtime started itself, and waits for, are in its own session.
 */
export function endedOrphans(): number[] {
  const own = readStat(Deno.pid);
  const found: number[] = [];
  for (const pid of childrenOf(Deno.pid)) {
    const stat = readStat(pid);
    if (stat?.state === "Z" && stat.session !== own?.session) found.push(pid);
  }
  return found;
}

/**
 * True while some process of this network namespace listens on the socket bound as `path`, also when
 * its file is gone. False where the kernel's table cannot be read.
 */
export function listensAt(path: string): boolean {
  // Number, references, protocol, flags, type, state, inode; the path is the rest of the line.
  const accepts = /^\S+: \S+ \S+ 00010000 \S+ \S+ +\d+ (.*)$/; // __SO_ACCEPTCON
  return (readText("/proc/net/unix") ?? "").split("\n")
    .some((line) => accepts.exec(line)?.[1] === path);
}
