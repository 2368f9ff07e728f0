/**
 * Runs tmux, always by argument vector. tmux itself interprets two things in arguments: a final `;`
 * separates commands, and formats (`#(…)` runs a command!) are expanded in names and folders. The
 * first is undone here for every argument; for the second see `literal`.
 */
import { errorText, TamqError } from "../base/errors.ts";

/** `new-session -e` and user options in `list-panes -F` work as used here from this version on. */
export const MINIMUM_TMUX = "3.2";

/** Which tmux server: by name (`-L`), by socket path (`-S`), or the default one. */
export interface ServerChoice {
  readonly name?: string;
  readonly path?: string;
}

export interface TmuxResult {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

export class Tmux {
  readonly #prefix: readonly string[];
  readonly #env: Readonly<Record<string, string>> | undefined;

  /** `env` replaces the whole environment of tmux, for tests. */
  constructor(choice: ServerChoice = {}, env?: Readonly<Record<string, string>>) {
    this.#prefix = choice.path !== undefined
      ? ["-S", choice.path]
      : choice.name !== undefined
      ? ["-L", choice.name]
      : [];
    this.#env = env;
  }

  /** The words that address this server in a command for people to type. */
  get address(): readonly string[] {
    return ["tmux", ...this.#prefix];
  }

  /** Runs one tmux command; throws `tmux_missing` when there is no tmux to run. */
  async attempt(...args: string[]): Promise<TmuxResult> {
    let output: Deno.CommandOutput;
    try {
      output = await this.#command(args, "piped").output();
    } catch (error) {
      return explain(error);
    }
    const { code, stdout, stderr } = output;
    const text = (bytes: Uint8Array) => new TextDecoder().decode(bytes);
    return { code, stdout: text(stdout), stderr: text(stderr) };
  }

  /** Standard output of one tmux command; throws `tmux_failed` with what tmux said. */
  async run(...args: string[]): Promise<string> {
    const { code, stdout, stderr } = await this.attempt(...args);
    if (code === 0) return stdout;
    const said = stderr.trim().split("\n")[0] || `exit status ${code}`;
    throw new TamqError("FAILED_PRECONDITION", "tmux_failed", `tmux ${args[0]}: ${said}`, {
      hint: `look at the server with: ${this.address.join(" ")} list-windows -a`,
    });
  }

  /** Hands the terminal to tmux (`attach-session`); resolves to its exit status. */
  async interactive(...args: string[]): Promise<number> {
    try {
      return (await this.#command(args, "inherit").spawn().status).code;
    } catch (error) {
      return explain(error);
    }
  }

  /** PID of the server; undefined when none runs. */
  async serverPid(): Promise<number | undefined> {
    // Not display-message: without a session some versions start a server for it.
    const { code, stdout } = await this.attempt("list-sessions", "-F", "#{pid}");
    const pid = Number(stdout.split("\n")[0]);
    return code === 0 && Number.isInteger(pid) && pid > 0 ? pid : undefined;
  }

  /** Throws `tmux_missing` or `tmux_too_old`. */
  async requireVersion(): Promise<void> {
    const { stdout } = await this.attempt("-V");
    const said = stdout.trim();
    const version = /(\d+)\.(\d+)/.exec(said);
    // Builds of the development branch call themselves "master" or "next-3.5".
    if (version === null || said.includes("openbsd")) return;
    const [major, minor] = MINIMUM_TMUX.split(".").map(Number) as [number, number];
    const [has, hasMinor] = [Number(version[1]), Number(version[2])];
    if (has > major || (has === major && hasMinor >= minor)) return;
    throw new TamqError(
      "FAILED_PRECONDITION",
      "tmux_too_old",
      `${said} is too old; tamq needs tmux ${MINIMUM_TMUX} or newer`,
      { hint: "install a newer tmux, and restart its server" },
    );
  }

  #command(args: readonly string[], io: "piped" | "inherit"): Deno.Command {
    return new Deno.Command("tmux", {
      args: [...this.#prefix, ...args.map(protectSemicolon)],
      stdin: io === "piped" ? "null" : "inherit",
      stdout: io,
      stderr: io,
      ...this.#env === undefined ? {} : { env: { ...this.#env }, clearEnv: true },
    });
  }
}

function explain(error: unknown): never {
  if (error instanceof Deno.errors.NotFound) {
    throw new TamqError("FAILED_PRECONDITION", "tmux_missing", "tmux is not installed", {
      hint: `install tmux ${MINIMUM_TMUX} or newer, or put its folder into PATH`,
      cause: error,
    });
  }
  throw new TamqError(
    "FAILED_PRECONDITION",
    "tmux_failed",
    `tmux cannot be run: ${errorText(error)}`,
    { cause: error },
  );
}

/** An argument that ends in `;` would end tmux's command; `\;` at the end stands for the character. */
export function protectSemicolon(arg: string): string {
  return arg.endsWith(";") ? `${arg.slice(0, -1)}\\;` : arg;
}

/** `text` for a place where tmux expands formats. */
export function literal(text: string): string {
  return text.replaceAll("#", "##");
}

/** What $TMUX says: the socket of the server whose pane we run in, and its PID. */
export function parseTmuxVariable(
  value: string | undefined,
): { path: string; pid: number } | undefined {
  // The path may hold commas; the two fields after it are numbers.
  const match = /^(.+),(\d+),\d+$/s.exec(value ?? "");
  return match ? { path: match[1]!, pid: Number(match[2]) } : undefined;
}
