/** One worker on one pseudo-terminal (B-01). */
import { TamqError } from "../base/errors.ts";
import {
  closeFd,
  EACCES,
  ENOENT,
  ENOEXEC,
  errnoText,
  type ExitStatus,
  foregroundGroup,
  openBell,
  openPidfd,
  openPty,
  openSlave,
  reap,
  ringBell,
  sendSignal,
  setSize,
  setTermios,
  SIGCONT,
  SIGHUP,
  SIGKILL,
  spawnOnTerminal,
  type TerminalSize,
  type Termios,
} from "../pty_ffi.ts";

export interface SessionOptions {
  readonly command: readonly string[];
  readonly directory: string;
  readonly env: Readonly<Record<string, string>>;
  readonly size: TerminalSize;
  /** Line settings to start with, as the outer terminal had them; else the kernel's. */
  readonly termios?: Termios;
}

export class Session {
  private constructor(
    /** Master side; nonblocking. */
    readonly master: number,
    readonly pid: number,
    readonly pidfd: number,
    /**
     * Kept open and never read: without it the master fails as soon as the worker closes its last
     * descriptor, though it may open its terminal again.
     */
    readonly slave: number,
  ) {}

  /**
   * Errors: `command_invalid`, `directory_missing`, `command_not_found`, `command_not_executable`,
   * `spawn_failed`, `terminal_error`; nothing is left open then.
   */
  static start(options: SessionOptions): Session {
    checkCommand(options.command);
    requireDirectory(options.directory);
    const { master, slavePath } = openPty(options.size);
    let slave = -1;
    try {
      slave = openSlave(slavePath);
      if (options.termios !== undefined) setTermios(master, options.termios);
      const { command, directory, env } = options;
      const pid = spawnOnTerminal({ command, directory, env, slavePath });
      if (pid < 0) throw spawnError(command[0]!, -pid);
      return new Session(master, pid, openPidfd(pid), slave);
    } catch (error) {
      closeFd(slave);
      closeFd(master);
      throw error;
    }
  }

  /**
   * Goes on with the worker of the program that this process was before (B-17), still its child: one
   * that ended meanwhile is told as any other, its status apart if somebody has collected it.
   */
  static resume({ pid, master, slave }: { pid: number; master: number; slave: number }): Session {
    let end: number;
    try {
      end = openPidfd(pid);
    } catch {
      end = openBell();
      ringBell(end);
    }
    return new Session(master, pid, end, slave);
  }

  resize(size: TerminalSize): void {
    setSize(this.master, size);
  }

  /** The exit status once the worker ended; reaps it. */
  reap(): ExitStatus | undefined {
    return reap(this.pid);
  }

  /** Asks the worker's group and the foreground group to end, as a closed terminal would. */
  hangUp(): void {
    this.#signalGroups(SIGHUP);
    this.#signalGroups(SIGCONT); // a stopped job cannot act on the hang-up
  }

  kill(): void {
    this.#signalGroups(SIGKILL);
  }

  #signalGroups(signal: number): void {
    const groups = new Set([this.pid, foregroundGroup(this.master) ?? this.pid]);
    for (const group of groups) sendSignal(-group, signal);
  }

  close(): void {
    closeFd(this.slave);
    closeFd(this.master);
    closeFd(this.pidfd);
  }
}

function checkCommand(command: readonly string[]): void {
  if ((command[0] ?? "") !== "" && !command.some((word) => word.includes("\0"))) return;
  throw new TamqError("INVALID_ARGUMENT", "command_invalid", "the command is empty or holds a NUL");
}

function requireDirectory(directory: string): void {
  try {
    if (Deno.statSync(directory).isDirectory) return;
  } catch { /* told below */ }
  throw new TamqError(
    "NOT_FOUND",
    "directory_missing",
    `${directory} is not a directory that can be entered`,
    { hint: "check the path in the gita registry: gita ll" },
  );
}

function spawnError(program: string, errno: number): TamqError {
  if (errno === ENOENT) {
    return new TamqError("NOT_FOUND", "command_not_found", `command "${program}" not found`, {
      hint: "give a program that is on PATH, or its full path",
    });
  }
  if (errno === EACCES || errno === ENOEXEC) {
    return new TamqError(
      "INVALID_ARGUMENT",
      "command_not_executable",
      `command "${program}" cannot be run: ${errnoText(errno)}`,
      { hint: "check its execute permission and its first line" },
    );
  }
  return new TamqError(
    "UNAVAILABLE",
    "spawn_failed",
    `cannot start "${program}": ${errnoText(errno)}`,
  );
}
