/**
 * What reads the worker's terminal right now (B-16): typing at a shell's prompt would run a
 * message's text, so a shell must be told from a program, and whatever cannot be seen into counts
 * as unknown.
 */
import { childrenOf, descendants, describe, type ProcessInfo } from "../base/proc.ts";
import { descriptorLink, descriptors, executable, executableSize } from "../base/proc_wait.ts";
import { foregroundGroup } from "../pty_ffi.ts";

export interface Foreground {
  readonly kind: "program" | "shell" | "unknown";
  readonly group: number | undefined;
  /** A shell on this terminal, perhaps behind others, takes commands: nothing is ever typed. */
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
 * True for a shell that takes its commands from its terminal: no `-c`, no script but a device. When
 * an option is not understood the answer is true: displaying a message to a program is harmless,
 * typing it at a prompt is not. `command` and `program` are the kernel's names for the process and
 * for the file that it runs: a link or `exec -a` changes the first word only.
 */
export function isInteractiveShell(
  argv: readonly string[],
  command = "",
  program = "",
): boolean {
  let words = [...argv];
  let name = baseName(words[0] ?? "");
  // A script's interpreter: `python3 /usr/bin/xonsh`, `busybox ash`.
  if (/^(?:python[\d.]*|busybox)$/.test(name) && SHELLS.has(baseName(words[1] ?? ""))) {
    words = words.slice(1);
    name = baseName(words[0]!);
  }
  if (!isShellName(name, command, program)) return false;
  for (let i = 1; i < words.length; i++) {
    const word = words[i]!;
    if (word === "--") return i + 1 >= words.length || DEVICE.test(words[i + 1]!);
    if (/^--?(?:commands?|Command|File|EncodedCommand)(?:=|$)/.test(word)) return false;
    if (VALUED.has(word)) i++;
    else if (word.startsWith("--")) continue;
    else if (/^-[A-Za-z]+$/.test(word)) {
      if (word.includes("c")) return false;
      if (word.includes("s")) return true; // commands from standard input, whatever follows
      if (/[oO]$/.test(word)) i++;
    } else if (/^[-+]/.test(word)) continue;
    else return DEVICE.test(word);
  }
  return true;
}

/** Operands that a shell would read its terminal by. */
const DEVICE = /^(?:\/dev\/|\/proc\/[^/]+\/(?:task\/[^/]+\/)?fd\/)/;
/** Descriptors from here on are a shell's own: bash 255, dash and ksh from 10 on read commands there. */
const OWN_DESCRIPTOR = 10;

/** A shell that takes commands from a terminal, under whatever name it was started. */
function isShell(process: ProcessInfo): boolean {
  const { pid, argv, command } = process;
  const path = executable(pid);
  let name = path === undefined ? "" : programName(path);
  // One file for all of busybox: the words say which of its programs it is.
  if (name === "busybox") name = "";
  else if (!isShellName(command, name) && isCopyOfShell(pid)) name = "sh";
  if (isInteractiveShell(argv, command, name)) return true;
  if (!isShellName(command, name) && !SHELLS.has(baseName(argv[0] ?? ""))) return false;
  // Scripts too are read from a terminal at times: `bash ./link-to-dev-tty`, `. /dev/tty`. zsh
  // keeps one such descriptor whatever it reads.
  const own = descriptors(pid).filter((fd) => {
    return fd >= OWN_DESCRIPTOR && TERMINAL.test(descriptorLink(pid, fd) ?? "");
  });
  return own.length > (name.endsWith("zsh") ? 1 : 0);
}

const TERMINAL = /^\/dev\/(?:pts\/\d+|tty\d*|console)$/;

/** `zsh` of `/usr/bin/zsh-5.9`. */
function programName(path: string): string {
  return baseName(path).replace(/[-.]?\d[\d.]*$/, "");
}

function isShellName(...names: readonly string[]): boolean {
  return names.some((name) => SHELLS.has(name));
}

let shellSizes: Set<number> | undefined;

/** A shell's file under another name: known by its length, for a display does no harm. */
function isCopyOfShell(pid: number): boolean {
  shellSizes ??= installedShells();
  const size = executableSize(pid);
  return size !== undefined && shellSizes.has(size);
}

function installedShells(): Set<number> {
  const sizes = new Set<number>();
  for (const dir of ["/usr/bin", "/usr/local/bin", "/bin"]) {
    for (const name of SHELLS) {
      try {
        if (name !== "busybox") sizes.add(Deno.statSync(`${dir}/${name}`).size);
      } catch { /* not installed */ }
    }
  }
  // Some are scripts of an interpreter, whose length says nothing of the interpreter.
  return sizes;
}

/** Descendants that are looked at; beyond them nothing can be said. */
const MAX_FAMILY = 1024;

/** The worker, its descendants, and those whose parents ended and left them to this process. */
function familyOf(own: ProcessInfo): { family: ProcessInfo[]; whole: boolean } {
  const pids = new Set(descendants(own.pid, MAX_FAMILY));
  for (const child of childrenOf(Deno.pid)) {
    if (pids.has(child)) continue;
    const orphan = describe(child);
    if (orphan === undefined) continue;
    if (orphan.session !== own.session && (orphan.tty === 0 || orphan.tty !== own.tty)) continue;
    for (const pid of descendants(child, MAX_FAMILY)) pids.add(pid);
  }
  const family = [...pids].map(describe).filter((process) => process !== undefined);
  return { family, whole: pids.size < MAX_FAMILY };
}

/**
 * Looks at the worker's terminal and at all its descendants (B-16). A shell below the worker that
 * takes commands from this terminal reads what the program in the foreground leaves unread: it makes
 * the window a shell's. One on another terminal, and a program that carries another terminal, is
 * reached through whatever relays to it: unknown.
 */
export function foreground(master: number, worker: number): Foreground {
  const own = describe(worker);
  const group = foregroundGroup(master);
  if (own === undefined) {
    return { kind: "unknown", group, windowShell: false, members: [] };
  }
  const { family, whole } = familyOf(own);
  const shells = family.filter(isShell);
  const windowShell = shells.some(({ tty }) => tty === own.tty);
  const unseen: Foreground = { kind: "unknown", group, windowShell, members: [] };
  if (group === undefined) return unseen;
  const members = family.filter(({ pgrp }) => pgrp === group);
  // The group's leader is asked for by number too: it may have been started by another thread.
  const leader = members.some(({ pid }) => pid === group) ? undefined : describe(group);
  if (leader?.pgrp === group) members.push(leader);
  if (members.length === 0) return unseen;
  const seen = { group, windowShell, members };
  if (shells.some(({ pgrp, tty }) => pgrp === group && tty === own.tty)) {
    return { kind: "shell", ...seen };
  }
  if (leader !== undefined && isShell(leader)) return { kind: "shell", ...seen };
  const elsewhere = shells.some(({ tty }) => tty !== own.tty);
  const opaque = family.some(isOpaque) || (leader !== undefined && isOpaque(leader));
  return { kind: elsewhere || opaque || !whole ? "unknown" : "program", ...seen };
}

function isOpaque({ pid, argv, command }: ProcessInfo): boolean {
  return OPAQUE.has(command) || OPAQUE.has(baseName(argv[0] ?? "")) ||
    OPAQUE.has(programName(executable(pid) ?? ""));
}
