/**
 * What reads the worker's terminal right now (B-16): typing at a shell's prompt would run a
 * message's text, so a shell must be told from a program, and whatever cannot be seen into counts
 * as unknown.
 */
import { descendants, describe, type ProcessInfo } from "../base/proc.ts";
import { foregroundGroup } from "../pty_ffi.ts";

export interface Foreground {
  readonly kind: "program" | "shell" | "unknown";
  readonly group: number | undefined;
  /** The window's own command is a shell: nothing is ever typed into it. */
  readonly windowShell: boolean;
  /** Processes of the group among the worker's descendants; none when they cannot be seen. */
  readonly members: readonly ProcessInfo[];
}

const SHELLS = new Set(
  ("sh bash rbash dash ash zsh rzsh ksh ksh93 mksh oksh lksh pdksh yash posh fish csh tcsh nu " +
    "elvish xonsh pwsh powershell osh ysh oil rc es scsh ion murex busybox").split(" "),
);
/** They carry another terminal or another user's processes, which cannot be looked into. */
const OPAQUE = new Set(
  ("ssh mosh mosh-client telnet rlogin sudo su doas runuser login docker podman nerdctl kubectl " +
    "lxc lxc-attach incus machinectl nsenter chroot unshare bwrap toolbox distrobox vagrant " +
    "screen tmux abduco dtach script expect unbuffer socat nc picocom minicom").split(" "),
);
/** Options of shells whose value is the next word. */
const VALUED = new Set(
  "-o +o -O +O --rcfile --init-file -C --init-command -d --debug -e --execute --config --env-config"
    .split(" "),
);

function baseName(path: string): string {
  return path.slice(path.lastIndexOf("/") + 1).replace(/^-/, "");
}

/**
 * True for a shell that takes its commands from its terminal: no `-c`, no script. When an option is
 * not understood the answer is true: displaying a message to a program is harmless, typing it at a
 * prompt is not.
 */
export function isInteractiveShell(argv: readonly string[], command = ""): boolean {
  let words = [...argv];
  let name = baseName(words[0] ?? "");
  // A script's interpreter: `python3 /usr/bin/xonsh`, `busybox ash`.
  if (/^(?:python[\d.]*|busybox)$/.test(name) && SHELLS.has(baseName(words[1] ?? ""))) {
    words = words.slice(1);
    name = baseName(words[0]!);
  }
  if (!SHELLS.has(name) && !SHELLS.has(command)) return false;
  for (let i = 1; i < words.length; i++) {
    const word = words[i]!;
    if (word === "--") return i + 1 >= words.length;
    if (/^--?(?:commands?|Command|File|EncodedCommand)(?:=|$)/.test(word)) return false;
    if (VALUED.has(word)) i++;
    else if (word.startsWith("--")) continue;
    else if (/^-[A-Za-z]+$/.test(word)) {
      if (word.includes("c")) return false;
      if (word.includes("s")) return true; // commands from standard input, whatever follows
      if (/[oO]$/.test(word)) i++;
    } else if (/^[-+]/.test(word)) continue;
    else return false;
  }
  return true;
}

function isShell(process: ProcessInfo): boolean {
  return isInteractiveShell(process.argv, process.command);
}

/** Looks at the processes of the terminal's foreground group among the worker's descendants. */
export function foreground(master: number, worker: number): Foreground {
  const own = describe(worker);
  const windowShell = own !== undefined && isShell(own);
  const group = foregroundGroup(master);
  const unseen: Foreground = { kind: "unknown", group, windowShell, members: [] };
  if (own === undefined || group === undefined) return unseen;
  // The group's leader is asked for by number too: it may have been started by another thread.
  const members = [...new Set([...descendants(worker), group])].map(describe)
    .filter((process) => process !== undefined && process.pgrp === group) as ProcessInfo[];
  if (members.length === 0) return unseen;
  if (members.some(isShell)) return { kind: "shell", group, windowShell, members };
  const opaque = members.some(({ argv, command }) =>
    OPAQUE.has(command) || OPAQUE.has(baseName(argv[0] ?? ""))
  );
  return { kind: opaque ? "unknown" : "program", group, windowShell, members };
}
