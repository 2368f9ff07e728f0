/**
 * The systemd user unit of the message service: its text, its place, and writing it. What is in the
 * file is text for systemd's own parser, which knows quotes, escapes, specifiers and variables.
 */
import { errorText, TamqError } from "./base/errors.ts";
import type { Env } from "./config.ts";

export const UNIT_NAME = "tamq.service";

/** Whether systemd runs that process as our unit. */
export function runsInUnit(pid: number): boolean {
  try {
    return Deno.readTextFileSync(`/proc/${pid}/cgroup`).split("\n")
      .some((line) => line.endsWith(`/${UNIT_NAME}`));
  } catch {
    return false;
  }
}

/** By this first line a unit is known to be ours. */
const MARK = "# Made by `tamq service install`.";

/** Settings of the shell that installs which the service must find again. */
const KEPT = [
  "TAMQ_CONFIG",
  "TAMQ_STATE_DIR",
  "TAMQ_SOCKET",
  "TAMQ_POLICY_PROFILE",
  "XDG_CONFIG_HOME",
  "XDG_STATE_HOME",
  "GITA_PROJECT_HOME",
  "DENO_DIR",
];

/** `${XDG_CONFIG_HOME:-~/.config}/systemd/user/tamq.service`; throws `home_unset`. */
export function unitPath(env: Env): string {
  const home = env("HOME");
  const config = env("XDG_CONFIG_HOME") || (home && `${home}/.config`);
  if (config) return `${config}/systemd/user/${UNIT_NAME}`;
  throw new TamqError("FAILED_PRECONDITION", "home_unset", "HOME is not set", {
    hint: "set HOME, or XDG_CONFIG_HOME",
  });
}

/** systemd takes no program with such characters in its path, however they are written. */
// deno-lint-ignore no-control-regex
const REFUSED = /["'\\\x00-\x1f\x7f]/;

/**
 * The unit that runs `argv`, whose first word is an absolute path. `graceMs` is how long the service
 * may take to stop; `more` are further variables for it. Throws `unit_path_unsupported`.
 */
export function unitText(
  argv: readonly string[],
  env: Env,
  options: { readonly graceMs: number; readonly more?: Readonly<Record<string, string>> },
): string {
  const variables = { ...options.more };
  for (const name of KEPT) {
    const value = env(name);
    if (value) variables[name] = value;
  }
  const [program, ...args] = argv;
  if (REFUSED.test(program!)) {
    throw new TamqError(
      "FAILED_PRECONDITION",
      "unit_path_unsupported",
      `systemd cannot start ${program}: its path holds a quote, a backslash or a control character`,
      { hint: "install it in a folder without them" },
    );
  }
  const command = [quoted(program!), ...args.map(argument)].join(" ");
  const settings = Object.entries(variables).map(([name, value]) =>
    `Environment=${quoted(`${name}=${value}`)}\n`
  );
  return `${MARK}
# Own settings belong beside it, where an update keeps them: systemctl --user edit tamq

[Unit]
Description=tamq message service
Documentation=man:tamq(1)

[Service]
Type=exec
ExecStart=${command}
WorkingDirectory=/
${settings.join("")}UMask=0077
NoNewPrivileges=yes
Restart=on-failure
RestartSec=1
# What starting again does not mend: a wrong configuration (2), another service that runs (4), a
# refusal (5).
RestartPreventExitStatus=2 4 5
# Longer than the service's own grace period.
TimeoutStopSec=${Math.ceil(options.graceMs / 1000) + 5}

[Install]
WantedBy=default.target
`;
}

/** An argument of a command, where `$` would begin a variable. */
function argument(word: string): string {
  return quoted(word).replaceAll("$", "$$$$"); // "$$" each: String.replace has its own dollars
}

/** One word for systemd: quotes and backslashes escaped, control characters and `%` as well. */
function quoted(word: string): string {
  const plain = word.replaceAll("%", "%%"); // "%" begins a specifier, also within quotes
  if (/^[\w/.:=@,+%-]+$/.test(plain)) return plain;
  const escaped = plain.replace(/[\\"]/g, "\\$&").replace(
    // deno-lint-ignore no-control-regex
    /[\x00-\x1f\x7f]/g,
    (char) => `\\x${char.charCodeAt(0).toString(16).padStart(2, "0")}`,
  );
  return `"${escaped}"`;
}

/** `current`: just as it would be written now; `foreign`: somebody else's, never touched. */
export type UnitState = "absent" | "current" | "outdated" | "foreign";

/** Throws `unit_unreadable`. */
export function unitState(path: string, wanted: string): UnitState {
  try {
    // A link leads to where somebody manages such files.
    if (!Deno.lstatSync(path).isFile) return "foreign";
    const text = Deno.readTextFileSync(path);
    if (text === wanted) return "current";
    return text.startsWith(`${MARK}\n`) ? "outdated" : "foreign";
  } catch (cause) {
    if (cause instanceof Deno.errors.NotFound) return "absent";
    throw failed(path, "unit_unreadable", cause);
  }
}

/** Puts the unit in its place in one step, 0644: never half of it. Throws `unit_unwritable`. */
export function writeUnit(path: string, text: string): void {
  const part = `${path}.${Deno.pid}.part`; // systemd reads no file whose name ends so
  try {
    Deno.mkdirSync(path.slice(0, path.lastIndexOf("/")), { recursive: true, mode: 0o700 });
    try {
      const file = Deno.openSync(part, { write: true, create: true, truncate: true });
      try {
        const bytes = new TextEncoder().encode(text);
        for (let at = 0; at < bytes.length;) at += file.writeSync(bytes.subarray(at));
        file.syncSync();
      } finally {
        file.close();
      }
      Deno.chmodSync(part, 0o644); // whatever the umask
      Deno.renameSync(part, path);
    } catch (error) {
      removeIfThere(part);
      throw error;
    }
  } catch (cause) {
    throw failed(path, "unit_unwritable", cause);
  }
}

/** Removes the unit and the link by which systemd starts it at login. Throws `unit_unwritable`. */
export function removeUnit(path: string): void {
  const dir = path.slice(0, path.lastIndexOf("/"));
  try {
    removeIfThere(`${dir}/default.target.wants/${UNIT_NAME}`);
    removeIfThere(path);
  } catch (cause) {
    throw failed(path, "unit_unwritable", cause);
  }
}

function removeIfThere(path: string): void {
  try {
    Deno.removeSync(path);
  } catch (error) {
    if (!(error instanceof Deno.errors.NotFound)) throw error;
  }
}

function failed(path: string, reason: string, cause: unknown): TamqError {
  return new TamqError("FAILED_PRECONDITION", reason, `${path}: ${errorText(cause)}`, {
    hint: "check the folder and its permissions",
    cause,
  });
}
