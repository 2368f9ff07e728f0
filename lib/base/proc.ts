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
 */
export function ancestry(pid: number): number[] {
  const chain: number[] = [];
  const sessions = climb(pid, chain);
  for (const leader of sessions) climb(leader, chain);
  // Fails closed: who hides behind a long chain is nobody.
  return chain.length < MAX_ANCESTRY ? chain : [];
}

/** Far above any real depth; bounds the work that a hostile chain of processes can cause. */
const MAX_ANCESTRY = 256;

/** Adds `from` and its ancestors to `chain`; returns their sessions. */
function climb(from: number, chain: number[]): Set<number> {
  const sessions = new Set<number>();
  for (let next = from; next > 1 && chain.length < MAX_ANCESTRY && !chain.includes(next);) {
    const stat = readStat(next);
    // The first one gone: nothing is known of it. A session may outlive its leader.
    if (stat === undefined && chain.length === 0) break;
    chain.push(next);
    if (stat === undefined) break;
    if (stat.session > 1) sessions.add(stat.session);
    next = stat.ppid;
  }
  return sessions;
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
