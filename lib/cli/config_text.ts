/** The table of configuration keys as text: `tamq help config`, `tamq config init`, and the docs. */
import { loadSettings } from "../config.ts";
import { CONFIG_KEYS, type ConfigKey, toToml } from "../config_keys.ts";
import { table } from "./render.ts";

/** What holds where the file says nothing: a TOML value, or words. */
export async function defaultTexts(): Promise<ReadonlyMap<string, string>> {
  const nobody = (name: string) => name === "HOME" ? "/nonexistent" : undefined;
  const defaults = await loadSettings(nobody, { ignoreFile: true });
  return new Map(
    CONFIG_KEYS.map((one) => [one.key, one.without ?? toToml(one.value(defaults))]),
  );
}

/** Keys without a table first, then by table. */
export function keysByTable(): ReadonlyMap<string, readonly ConfigKey[]> {
  const tables = new Map<string, ConfigKey[]>([["", []]]);
  for (const one of CONFIG_KEYS) {
    const name = one.key.includes(".") ? one.key.slice(0, one.key.lastIndexOf(".")) : "";
    const keys = tables.get(name);
    if (keys === undefined) tables.set(name, [one]);
    else keys.push(one);
  }
  return tables;
}

export async function configHelp(): Promise<string> {
  const defaults = await defaultTexts();
  const blocks = CONFIG_KEYS.map((one) => {
    const env = one.env === undefined ? "" : `; ${one.env} comes before the file`;
    return `  ${one.key}\n` + [
      `${one.brief}.`,
      `${one.type}: ${one.allowed}; default: ${defaults.get(one.key)!.replaceAll("`", "")}${env}`,
    ].map((line) => `      ${line}`).join("\n");
  });
  return `The configuration file is TOML; tamq config path says where it is. What a command's option says comes
before the environment, that before the file, and that before the defaults. An empty variable counts
as unset. A running service keeps what it read at its start. For a window the word of repositories
comes before that of commands, and both before delivery.

COMMANDS
${
    table([
      ["  tamq config show", "every setting in force and where it comes from"],
      ["  tamq config check", "whether the file is right, and if not, where"],
      ["  tamq config init", "writes a file with every key as a comment"],
      ["  tamq config path", "prints where the file is, or would be"],
    ])
  }

KEYS
${blocks.join("\n")}`;
}

export async function configTemplate(): Promise<string> {
  const defaults = await defaultTexts();
  const lines = [
    "# Configuration of tamq. Take away the # before what you change; what is left out has its",
    "# default. See: tamq help config, tamq config check",
  ];
  for (const [name, keys] of keysByTable()) {
    if (name !== "") lines.push("", `[${name}]`);
    for (const one of keys) {
      const bare = one.key.slice(name === "" ? 0 : name.length + 1);
      const otherwise = one.without === undefined ? [] : [
        `# Without it: ${one.without.replaceAll("`", "")}.`,
      ];
      const value = one.without === undefined ? defaults.get(one.key)! : one.example;
      lines.push("", `# ${one.brief}: ${one.allowed}.`, ...otherwise, `#${bare} = ${value}`);
    }
  }
  return lines.join("\n") + "\n";
}
