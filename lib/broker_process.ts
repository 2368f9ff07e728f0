/** Tells brokers from other processes, also brokers that are not attached (B-04, T-27). */
import type { Clock } from "./base/clock.ts";
import { describe } from "./base/proc.ts";

/** What a broker is started with, behind what runs `tamq`. */
export function brokerArguments(
  options: {
    readonly repo: string;
    readonly path: string;
    readonly mode: string;
    readonly command: readonly string[];
    readonly service: boolean;
    readonly bare?: boolean | undefined;
    readonly record?: "output" | "input" | undefined;
    readonly capture?: boolean | undefined;
    readonly profile?: string | undefined;
    /** From a broker that becomes this program (B-17). */
    readonly handover?: string;
  },
): string[] {
  const { repo, path, mode, command, service, bare, record, capture, profile, handover } = options;
  return [
    "broker",
    `--repo=${repo}`, // joined: a name may begin with "-"
    "--cwd",
    path,
    "--mode",
    mode,
    ...service ? [] : ["--no-service"],
    ...bare ? ["--bare"] : [],
    ...record === undefined ? [] : [record === "input" ? "--record-input" : "--record"],
    ...capture ? ["--capture"] : [],
    ...profile === undefined ? [] : [`--profile=${profile}`],
    ...handover === undefined ? [] : [`--handover=${handover}`],
    "--",
    ...command,
  ];
}

/** True for the argument vector with which windows start their broker, however tamq is installed. */
export function isBrokerCommand(argv: readonly string[]): boolean {
  // A tmux server keeps the arguments of the client that started it, and with them those of the
  // first window's broker. It is above every shell in it, windows of ours or not.
  if (/(?:^|\/)tmux(?:$|[ :])/.test(argv[0] ?? "")) return false;
  const verb = argv.indexOf("broker");
  return verb > 0 && argv[verb + 1]?.startsWith("--repo") === true;
}

/** The repository whose window a broker with that argument vector runs. */
function repoOf(argv: readonly string[]): string | undefined {
  if (!isBrokerCommand(argv)) return undefined;
  const at = argv.indexOf("broker") + 1;
  return argv[at]!.startsWith("--repo=") ? argv[at]!.slice("--repo=".length) : argv[at + 1] ?? "";
}

/**
 * The repository of the window that a process is in, from its {@link ancestry}; undefined outside of
 * all windows. The outermost broker counts: whoever runs in a window can start programs below it
 * that bear any arguments.
 */
export function windowOfAncestry(
  pids: readonly number[],
  argvOf: (pid: number) => readonly string[] = (pid) => describe(pid)?.argv ?? [],
): string | undefined {
  return pids.map((pid) => repoOf(argvOf(pid))).findLast((repo) => repo !== undefined);
}

/**
 * Every send from outside the windows asks about the same shells and servers above it: an answer
 * holds this long, which no reuse of a pid undercuts.
 */
const REMEMBERED_MS = 1000;
const MOST_REMEMBERED = 1024;

/** A look-up of that kind; one a service. */
export function brokerProcesses(
  clock: Pick<Clock, "monotonic">,
  argvOf: (pid: number) => readonly string[] = (pid) => describe(pid)?.argv ?? [],
): (pid: number) => boolean {
  const known = new Map<number, { broker: boolean; until: number }>();
  return (pid) => {
    const now = clock.monotonic();
    const entry = known.get(pid);
    if (entry !== undefined && now < entry.until) return entry.broker;
    if (known.size >= MOST_REMEMBERED) known.clear();
    const broker = isBrokerCommand(argvOf(pid));
    known.set(pid, { broker, until: now + REMEMBERED_MS });
    return broker;
  };
}
