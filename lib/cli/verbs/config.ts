/** `tamq config show|check|path|init` (C-02, C-03). */
import { displaySafe } from "../../base/display.ts";
import { errorText, TamqError } from "../../base/errors.ts";
import { type FileSettings, loadSettings, readConfig, type Settings } from "../../config.ts";
import { CONFIG_KEYS, type ConfigKey, configVersion, toToml } from "../../config_keys.ts";
import type { Verb } from "../command.ts";
import { configTemplate } from "../config_text.ts";
import { lookOf, table } from "../layout.ts";
import type { JsonFlag } from "./service.ts";

export const show: Verb<JsonFlag> = async function ({ json }) {
  const settings = await loadSettings(this.env);
  const file = settings.configured ? await readConfig(settings.configFile, true) : undefined;
  const rows = CONFIG_KEYS.map((key) => ({
    key: key.key,
    value: key.value(settings) ?? null,
    from: sourceOf(key, this.env, file),
  }));
  if (json) {
    for (const row of rows) this.out(JSON.stringify(row));
    return;
  }
  this.out(table(
    [
      ["KEY", "FROM", "VALUE"],
      ...rows.map(({ key, value, from }) => [key, from, value === null ? "-" : toToml(value)]),
    ],
    lookOf(this),
    { header: true },
  ));
};

/** The variable, `file`, or `default`. */
function sourceOf(
  key: ConfigKey,
  env: (name: string) => string | undefined,
  file: FileSettings | undefined,
): string {
  if (key.env !== undefined && env(key.env)) return key.env;
  return isIn(file, key.key) || (ALIASES[key.key] ?? []).some((other) => isIn(file, other))
    ? "file"
    : "default";
}

/** Keys that mean the same. */
const ALIASES: Readonly<Record<string, readonly string[]>> = {
  "policy_profile": ["policy.profile"],
  "policy.profile": ["policy_profile"],
  "delivery.ack_mode": ["coordination.delivery_ack_mode"],
  "coordination.delivery_ack_mode": ["delivery.ack_mode"],
};

function isIn(file: FileSettings | undefined, key: string): boolean {
  let value: unknown = file;
  for (const part of key.split(".")) value = (value as Record<string, unknown> | undefined)?.[part];
  return value !== undefined;
}

export const check: Verb<unknown> = async function () {
  const settings = await loadSettings(this.env);
  const { configFile, configured } = settings;
  this.out(
    displaySafe(configured ? `${configFile}: ok` : `there is no ${configFile}; the defaults apply`),
  );
  this.out(`version ${configVersion(settings)}, as receipts carry it`);
};

/** Also while the file is broken. */
const located = (env: (name: string) => string | undefined): Promise<Settings> =>
  loadSettings(env, { ignoreFile: true });

export const path: Verb<unknown> = async function () {
  this.out((await located(this.env)).configFile);
};

export const init: Verb<unknown> = async function () {
  const { configFile } = await located(this.env);
  try {
    Deno.mkdirSync(configFile.replace(/\/[^/]*$/, "") || "/", { recursive: true, mode: 0o700 });
    Deno.writeTextFileSync(configFile, await configTemplate(), { createNew: true, mode: 0o600 });
  } catch (cause) {
    if (cause instanceof Deno.errors.AlreadyExists) {
      throw new TamqError("ALREADY_EXISTS", "config_exists", `${configFile} exists already`, {
        hint: "it was left as it is; move it away for a new one",
      });
    }
    throw new TamqError(
      "FAILED_PRECONDITION",
      "output_failed",
      `cannot write ${configFile}: ${errorText(cause)}`,
      { hint: "check the path and its permissions", cause },
    );
  }
  this.out(`wrote ${configFile}`);
};
