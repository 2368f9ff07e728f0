/**
 * A world of its own for end-to-end tests and the demonstration: repositories registered with the
 * real gita, a private tmux server, state and sockets in one temporary folder. Nothing of the
 * user's is read or written.
 */
import { systemClock } from "../../lib/base/clock.ts";
import { pause } from "../../lib/base/clock.ts";

const ROOT = new URL("../../", import.meta.url).pathname;

export interface Result {
  code: number;
  stdout: string;
  stderr: string;
}

export interface RunOptions {
  stdin?: string | Uint8Array;
  env?: Record<string, string>;
  cwd?: string;
}

/** One message as `tamq history --json` prints it. */
export interface Row {
  message_id: string;
  sender_repo: string;
  target_repo: string;
  provenance: string;
  state: string;
  body: string;
  attempt_count: number;
  waiting_reason: string | null;
  last_failure_reason: string | null;
}

export class World implements AsyncDisposable {
  /** An installed command to try in place of this checkout. */
  executable?: string;

  private constructor(readonly dir: string, readonly env: Record<string, string>) {}

  /** Makes a world with these repositories registered in gita. */
  static async create(repos: readonly string[] = []): Promise<World> {
    // Short: a socket path may hold at most 107 bytes.
    const dir = await Deno.makeTempDir({ prefix: "tamq-" });
    const env: Record<string, string> = {
      PATH: Deno.env.get("PATH") ?? "/usr/bin:/bin",
      HOME: `${dir}/home`,
      LANG: "C.UTF-8",
      TERM: "xterm-256color",
      SHELL: "/bin/bash",
      XDG_CONFIG_HOME: `${dir}/config`,
      XDG_STATE_HOME: `${dir}/state`,
      XDG_RUNTIME_DIR: `${dir}/run`,
      TMUX_TMPDIR: `${dir}/tmux`,
      GIT_CONFIG_GLOBAL: "/dev/null",
    };
    // The caches of the runtime stay the user's: they hold no state of ours.
    for (const name of ["DENO_TLS_CA_STORE", "NO_COLOR"]) {
      const value = Deno.env.get(name);
      if (value !== undefined) env[name] = value;
    }
    env.DENO_DIR = Deno.env.get("DENO_DIR") ?? await denoDir();
    for (const name of ["home", "config", "state", "run", "tmux", "repos"]) {
      await Deno.mkdir(`${dir}/${name}`, { mode: 0o700 });
    }
    const world = new World(dir, env);
    await Deno.writeTextFile(`${dir}/home/.tmux.conf`, "set -g default-shell /bin/sh\n");
    for (const name of repos) await world.addRepo(name);
    return world;
  }

  repo(name: string): string {
    return `${this.dir}/repos/${name}`;
  }

  /** A git repository, registered with the real gita. */
  async addRepo(name: string): Promise<void> {
    const path = this.repo(name);
    await Deno.mkdir(path, { recursive: true });
    await this.must(["git", "init", "-q", path]);
    await this.must(["gita", "add", path]);
  }

  run(argv: readonly string[], options: RunOptions = {}): Promise<Result> {
    return runProcess(argv, { ...options, env: { ...this.env, ...options.env }, clearEnv: true });
  }

  /** Runs and throws unless the exit status is 0; returns standard output. */
  async must(argv: readonly string[], options: RunOptions = {}): Promise<string> {
    const result = await this.run(argv, options);
    if (result.code !== 0) {
      throw new Error(`${argv.join(" ")}: status ${result.code}\n${result.stdout}${result.stderr}`);
    }
    return result.stdout;
  }

  /** The argument vector of the product under test. */
  argv(args: readonly string[]): string[] {
    // It may be an executable …
    const executable = this.executable ?? Deno.env.get("TAMQ_TEST_EXECUTABLE");
    if (executable !== undefined) return [executable, ...args];
    // … and otherwise be tried on another version of the runtime than the tests run on.
    const deno = Deno.env.get("TAMQ_TEST_DENO") ?? Deno.execPath();
    return [deno, "run", "-A", "--no-check", "--frozen", `${ROOT}main.ts`, ...args];
  }

  tamq(args: readonly string[], options: RunOptions = {}): Promise<Result> {
    return this.run(this.argv(args), options);
  }

  mustTamq(args: readonly string[], options: RunOptions = {}): Promise<string> {
    return this.must(this.argv(args), options);
  }

  tmux(...args: string[]): Promise<string> {
    return this.must(["tmux", ...args]);
  }

  /** Opens windows for `repos` running `command`. */
  open(command: string, ...repos: string[]): Promise<string> {
    return this.mustTamq(["--command", command, ...repos]);
  }

  /** The window id of a repository, by the option that marks it. */
  async window(repo: string): Promise<string> {
    const list = await this.tmux("list-windows", "-a", "-F", "#{window_id} #{@tamq_repo}");
    for (const line of list.split("\n")) {
      const [id, name] = line.split(" ");
      if (id && name && decodeURIComponent(name) === repo) return id;
    }
    throw new Error(`no window for ${repo} in:\n${list}`);
  }

  /** What the window shows, with its scrollback, wrapped lines joined. */
  async screen(repo: string): Promise<string> {
    return await this.tmux("capture-pane", "-p", "-J", "-S", "-", "-t", await this.window(repo));
  }

  /** Types `text` and Enter as the operator would. */
  async type(repo: string, text: string): Promise<void> {
    const window = await this.window(repo);
    await this.tmux("send-keys", "-t", window, "-l", "--", text);
    await this.tmux("send-keys", "-t", window, "Enter");
  }

  async history(): Promise<Row[]> {
    const text = await this.mustTamq(["history", "--json", "--limit", "1000"]);
    return text.split("\n").filter((line) => line !== "").map((line) => JSON.parse(line) as Row);
  }

  /** Waits until `probe` returns something other than false or undefined; fails with what was last seen. */
  async until<T>(what: string, probe: () => Promise<T | false | undefined>): Promise<T> {
    const end = systemClock.monotonic() + 20_000;
    for (;;) {
      const seen = await probe();
      if (seen !== false && seen !== undefined) return seen;
      if (systemClock.monotonic() > end) {
        const rows = await this.history().catch(() => []);
        throw new Error(`timed out waiting for ${what}; history: ${JSON.stringify(rows, null, 1)}`);
      }
      await pause(systemClock, 30);
    }
  }

  untilScreen(repo: string, text: string): Promise<string> {
    return this.until(`"${text}" in the window of ${repo}`, async () => {
      const screen = await this.screen(repo);
      return screen.includes(text) && screen;
    });
  }

  /** Waits for `count` messages that all satisfy `accept`. */
  untilHistory(
    count: number,
    accept: (row: Row) => boolean = (row) => row.state === "injected",
  ): Promise<Row[]> {
    return this.until(`${count} messages in the history`, async () => {
      const rows = await this.history();
      return rows.length >= count && rows.every(accept) && rows;
    });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.run(["tmux", "kill-server"]).catch(() => {});
    await this.tamq(["stop"]).catch(() => {});
    await Deno.remove(this.dir, { recursive: true });
  }
}

/** Runs a process to its end; standard input is `stdin` or empty. */
export async function runProcess(
  argv: readonly string[],
  options: RunOptions & { clearEnv?: boolean } = {},
): Promise<Result> {
  const [program, ...args] = argv;
  const child = new Deno.Command(program!, {
    args,
    cwd: options.cwd,
    env: options.env,
    clearEnv: options.clearEnv ?? false,
    stdin: options.stdin === undefined ? "null" : "piped",
    stdout: "piped",
    stderr: "piped",
  }).spawn();
  if (options.stdin !== undefined) {
    const bytes = typeof options.stdin === "string"
      ? new TextEncoder().encode(options.stdin)
      : options.stdin;
    const writer = child.stdin.getWriter();
    await writer.write(bytes).catch(() => {}); // the program may end without reading
    await writer.close().catch(() => {});
  }
  const { code, stdout, stderr } = await child.output();
  const text = (bytes: Uint8Array) => new TextDecoder().decode(bytes);
  return { code, stdout: text(stdout), stderr: text(stderr) };
}

let knownDenoDir: string | undefined;
async function denoDir(): Promise<string> {
  if (knownDenoDir === undefined) {
    const info = await runProcess([Deno.execPath(), "info", "--json"]);
    knownDenoDir = (JSON.parse(info.stdout) as { denoDir: string }).denoDir;
  }
  return knownDenoDir;
}
