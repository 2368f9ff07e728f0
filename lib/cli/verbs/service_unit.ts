/** `tamq service install|uninstall|status`: the message service in the care of systemd. */
import { selfCommand } from "../../base/self.ts";
import { errorText, TamqError } from "../../base/errors.ts";
import { loadSettings } from "../../config.ts";
import { SERVICE_V8_FLAGS } from "../../service_control.ts";
import {
  removeUnit,
  UNIT_NAME,
  unitPath,
  type UnitState,
  unitState,
  unitText,
  writeUnit,
} from "../../systemd_unit.ts";
import type { Verb } from "../command.ts";
import type { CliContext } from "../context.ts";
import { EXIT } from "../exit_codes.ts";
import { lookOf, table } from "../layout.ts";
import { ask, type JsonFlag } from "./service.ts";

export interface InstallFlags extends JsonFlag {
  readonly print?: boolean;
}

interface Unit {
  readonly path: string;
  readonly text: string;
  readonly state: UnitState;
}

async function unitOf(context: CliContext): Promise<Unit> {
  const { graceMs } = await loadSettings(context.env);
  const path = unitPath(context.env);
  const text = unitText(selfCommand(["serve"]), context.env, {
    graceMs,
    more: { DENO_V8_FLAGS: SERVICE_V8_FLAGS },
  });
  return { path, text, state: unitState(path, text) };
}

export const install: Verb<InstallFlags> = async function (flags) {
  const unit = await unitOf(this);
  if (flags.print) return this.out(unit.text.trimEnd());
  tell(this, unit, flags, await put(this, ours(unit)));
};

export const uninstall: Verb<JsonFlag> = async function (flags) {
  const unit = await unitOf(this);
  tell(this, unit, flags, await take(this, ours(unit)));
};

/** Throws `unit_foreign` when the unit is somebody else's. */
function ours(unit: Unit): Unit {
  if (unit.state !== "foreign") return unit;
  throw new TamqError("ALREADY_EXISTS", "unit_foreign", `${unit.path} was not written by tamq`, {
    hint: "move it away; tamq service install --print shows what tamq would write",
  });
}

function tell(context: CliContext, { path }: Unit, flags: JsonFlag, done: Done): void {
  if (flags.json) context.out(JSON.stringify({ unit: UNIT_NAME, path, ...done.record }));
  else done.lines.forEach((line) => context.out(line));
}

interface Done {
  readonly record: Readonly<Record<string, unknown>>;
  readonly lines: readonly string[];
}

async function put(context: CliContext, { path, text, state }: Unit): Promise<Done> {
  if (state !== "current") writeUnit(path, text);
  const lines = [state === "current" ? `${path} is up to date` : `written: ${path}`];
  if (!await managerReachable(context)) {
    lines.push("No user manager of systemd answers here. In a login session:");
    lines.push("  systemctl --user daemon-reload && systemctl --user enable --now tamq");
    return { record: { state: "current", enabled: false, started: false }, lines };
  }
  await systemctl(context, "daemon-reload");
  await systemctl(context, "enable", UNIT_NAME);
  lines.push("It starts at login.");
  const active = await isActive(context);
  const running = active || await answers(context);
  if (!running) {
    await systemctl(context, "start", UNIT_NAME);
    lines.push("The service is started.");
  } else if (!active) {
    lines.push("A service runs already. To hand it over:");
    lines.push("  tamq stop && systemctl --user start tamq");
  } else if (state !== "current") {
    lines.push("The running service keeps its old settings until: systemctl --user restart tamq");
  }
  return { record: { state: "current", enabled: true, started: !running }, lines };
}

async function take(context: CliContext, { path, state }: Unit): Promise<Done> {
  const reachable = await managerReachable(context);
  if (state === "absent") return { record: { state, removed: false }, lines: ["not installed"] };
  if (reachable) await systemctl(context, "disable", "--now", UNIT_NAME);
  removeUnit(path);
  if (reachable) await systemctl(context, "daemon-reload");
  return { record: { state: "absent", removed: true }, lines: [`removed: ${path}`] };
}

const STATES: Readonly<Record<UnitState, string>> = {
  absent: "not installed",
  current: "installed and up to date",
  outdated: "installed, but differs from what this tamq would write: tamq service install",
  foreign: "not written by tamq",
};

export const status: Verb<JsonFlag> = async function (flags) {
  const unit = await unitOf(this);
  const reachable = await managerReachable(this);
  const enabled = reachable ? await isEnabled(this) : null;
  const active = reachable ? await isActive(this) : null;
  const said = (value: boolean | null) => value === null ? "unknown" : value ? "yes" : "no";
  if (flags.json) {
    const { path, state } = unit;
    this.out(
      JSON.stringify({ unit: UNIT_NAME, path, state, manager: reachable, enabled, active }),
    );
  } else {
    this.out(table([
      ["unit", unit.path],
      ["state", STATES[unit.state]],
      ["user manager", reachable ? "reachable" : "not reachable"],
      ["starts at login", said(enabled)],
      ["active", said(active)],
    ], lookOf(this)));
  }
  return unit.state === "current" ? EXIT.ok : EXIT.failure;
};

/** Whether a service answers, whoever started it. */
async function answers(context: CliContext): Promise<boolean> {
  try {
    await ask(context, "ping", {});
    return true;
  } catch (error) {
    if (error instanceof TamqError && error.code === "UNAVAILABLE") return false;
    throw error;
  }
}

async function managerReachable(context: CliContext): Promise<boolean> {
  // The mildest question that only a manager answers.
  return await attempt(context, "show-environment").then(({ code }) => code === 0);
}

async function isActive(context: CliContext): Promise<boolean> {
  return (await attempt(context, "is-active", "--quiet", UNIT_NAME)).code === 0;
}

async function isEnabled(context: CliContext): Promise<boolean> {
  return (await attempt(context, "is-enabled", "--quiet", UNIT_NAME)).code === 0;
}

export async function systemctl(context: CliContext, ...args: string[]): Promise<void> {
  const { code, said } = await attempt(context, ...args);
  if (code === 0) return;
  throw new TamqError(
    "FAILED_PRECONDITION",
    "systemd_failed",
    `systemctl --user ${args.join(" ")}: ${said.split("\n")[0] || `exit status ${code}`}`,
    { hint: "see: systemctl --user status tamq, journalctl --user -u tamq" },
  );
}

/** 127 when there is no systemctl to run. */
async function attempt(
  context: CliContext,
  ...args: string[]
): Promise<{ code: number; said: string }> {
  const env: Record<string, string> = {};
  for (
    const name of ["PATH", "HOME", "XDG_RUNTIME_DIR", "XDG_CONFIG_HOME", "DBUS_SESSION_BUS_ADDRESS"]
  ) {
    const value = context.env(name);
    if (value !== undefined) env[name] = value;
  }
  try {
    const { code, stderr } = await new Deno.Command("systemctl", {
      args: ["--user", ...args],
      env,
      clearEnv: true,
      stdin: "null",
      stdout: "null",
      stderr: "piped",
    }).output();
    return { code, said: new TextDecoder().decode(stderr).trim() };
  } catch (error) {
    if (error instanceof Deno.errors.NotFound) return { code: 127, said: "there is no systemctl" };
    return { code: 126, said: errorText(error) };
  }
}
