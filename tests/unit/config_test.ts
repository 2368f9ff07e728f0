/** The configuration file: its errors, its table of keys, and what `tamq config` makes of them. */
import assert from "node:assert/strict";
import { parse } from "smol-toml";
import { TamqError } from "../../lib/base/errors.ts";
import { configTemplate, defaultTexts } from "../../lib/cli/config_text.ts";
import { loadSettings } from "../../lib/config.ts";
import { CONFIG_KEYS, configVersion, toToml } from "../../lib/config_keys.ts";
import { DEFAULT_POLICY } from "../../lib/model/retry_schedule.ts";
import { deliveryPolicy, windowRule } from "../../lib/model/window_policy.ts";
import { configJsonSchema, parseConfig } from "../../lib/config_schema.ts";
import { configurationPage } from "../../scripts/config_docs.ts";
import { runInside } from "../helpers/cli.ts";
import { withTempDir } from "../helpers/temp.ts";
import { World } from "../helpers/world.ts";

const ROOT = new URL("../../", import.meta.url).pathname;
const SHOWN = "lib/config_keys.ts";

interface Schema {
  type?: string;
  properties?: Record<string, Schema>;
  enum?: unknown[];
  minimum?: number;
  maximum?: number;
}

/** Every key of the schema that has no keys of its own. */
function leaves(schema: Schema, prefix = ""): [string, Schema][] {
  return Object.entries(schema.properties ?? {}).flatMap(([name, inner]) =>
    inner.properties === undefined
      ? [[prefix + name, inner] as [string, Schema]]
      : leaves(inner, `${prefix}${name}.`)
  );
}

/** A file that says this alone. */
function file(key: string, value: string): string {
  const dot = key.lastIndexOf(".");
  return dot < 0
    ? `${key} = ${value}\n`
    : `[${key.slice(0, dot)}]\n${key.slice(dot + 1)} = ${value}\n`;
}

function refused(text: string): TamqError {
  try {
    parseConfig(text, "/c.toml");
  } catch (error) {
    assert.ok(error instanceof TamqError);
    assert.deepEqual([error.code, error.reason], ["INVALID_ARGUMENT", "config_invalid"]);
    return error;
  }
  throw new Error(`accepted: ${text}`);
}

Deno.test("[C-03] the table of keys has every key of the schema, with its range; examples and defaults are valid", async () => {
  const schema = new Map(leaves(configJsonSchema() as Schema));
  assert.deepEqual(CONFIG_KEYS.map((one) => one.key).sort(), [...schema.keys()].sort(), SHOWN);
  const defaults = await defaultTexts();
  for (const { key, type, allowed, example, without } of CONFIG_KEYS) {
    assert.ok(parseConfig(file(key, example), "/c.toml"), key);
    if (without === undefined) {
      const value = defaults.get(key)!;
      assert.notEqual(example, value, `${key}: the example says nothing new`);
      assert.ok(parseConfig(file(key, value), "/c.toml"), key);
    }
    const { minimum, maximum, enum: values } = schema.get(key)!;
    for (const bound of [minimum, maximum]) {
      if (bound !== undefined) assert.ok(allowed.includes(String(bound)), `${key}: ${bound}`);
    }
    for (const value of values ?? []) assert.ok(allowed.includes(`"${value}"`), key);
    if (minimum !== undefined && maximum !== undefined) {
      for (const value of [minimum - 1, maximum + 1]) {
        const { message } = refused(file(key, String(value)));
        assert.equal(
          message,
          `/c.toml, line ${key.includes(".") ? 2 : 1}: ${key} is ${value}; allowed: ${allowed}`,
        );
      }
    }
    const wrong = type === "string" ? "7" : '"seven"';
    assert.match(refused(file(key, wrong)).message, / is .*; allowed: /, key);
  }
});

Deno.test("[C-03] errors of the file name line, key, value and what is allowed", () => {
  const cases: [string, RegExp, RegExp][] = [
    ["socket = nowhere\n", /^\/c\.toml, line 1: not valid TOML: /, /quotes/],
    [
      "\n[delivery]\nmax_atempts = 3\n",
      /, line 3: unknown key "delivery\.max_atempts"$/,
      /did you mean "delivery\.max_attempts"\? allowed: ack_mode, /,
    ],
    [
      "repositories.alpha.observ = 'off'\n",
      /unknown key "repositories\.alpha\.observ"/,
      /^allowed: for each .*observe/,
    ],
    [
      "[repositories.alpha]\nobserve = 1\n",
      /line 2: repositories\.alpha\.observe is 1; allowed: for each/,
      /help config/,
    ],
    ["zzz = 1\n", /, line 1: unknown key "zzz"$/, /^allowed: state_dir, socket, /],
    ["[zzz]\na = 1\n", /, line 1: unknown key "zzz"$/, /allowed: state_dir/],
    [
      "[delivery]\nack_mode = 'fast'\n",
      /line 2: delivery\.ack_mode is "fast"; allowed: "injected" or/,
      /help config/,
    ],
    [
      "[delivery]\nbackoff_seconds = [5,\n  0]\n",
      /line 2: delivery\.backoff_seconds is \[5, 0\]; allowed: 1 to 16/,
      /help config/,
    ],
    ["delivery.max_attempts = 10\n", /line 1: delivery\.max_attempts is 10;/, /help config/],
    ["delivery = { max_attempts = 10 }\n", /line 1: delivery\.max_attempts is 10;/, /help config/],
    [
      "socket = 'tamq.sock'\n",
      /line 1: socket is "tamq\.sock"; allowed: a full path/,
      /help config/,
    ],
  ];
  for (const [text, message, hint] of cases) {
    const error = refused(text);
    assert.match(error.message, message);
    assert.match(error.hint!, hint);
  }
});

Deno.test("[C-03] docs/configuration.md is what the table of keys says", async () => {
  const text = await configurationPage();
  assert.equal(await Deno.readTextFile(`${ROOT}docs/configuration.md`), text, "deno task docs");
  for (const [, example] of text.matchAll(/```toml\n([^]*?)```/g)) {
    assert.ok(parseConfig(example!, "/docs.toml"));
  }
});

Deno.test("[C-01, C-03] tamq help config names every key, its type, range and default", async () => {
  const { code, stdout } = await runInside(["help", "config"]);
  assert.equal(code, 0);
  for (const { key, allowed } of CONFIG_KEYS) {
    assert.ok(stdout.includes(`\n  ${key}\n`), key);
    assert.ok(stdout.includes(allowed), key);
  }
});

Deno.test("[C-02, C-03] config init writes a file of comments, 0600, and never over another; with them taken away it is valid", async () => {
  await withTempDir(async (dir) => {
    const env = { HOME: dir };
    const path = `${dir}/.config/tamq/config.toml`;
    assert.deepEqual(await runInside(["config", "path"], { env }), {
      code: 0,
      stdout: `${path}\n`,
      stderr: "",
    });
    assert.match((await runInside(["config", "check"], { env })).stdout, /^there is no .*defaults/);
    assert.equal((await runInside(["config", "init"], { env })).stdout, `wrote ${path}\n`);
    assert.equal((Deno.statSync(path).mode ?? 0) & 0o777, 0o600);
    assert.equal((Deno.statSync(`${dir}/.config/tamq`).mode ?? 0) & 0o777, 0o700);
    const checked = await runInside(["config", "check"], { env });
    assert.match(
      checked.stdout,
      /^\S+config\.toml: ok\nversion [0-9a-f]{16}, as receipts carry it\n$/,
    );
    assert.deepEqual(
      await loadSettings((name) => name === "HOME" ? dir : undefined),
      {
        ...await loadSettings((name) => name === "HOME" ? dir : undefined, { ignoreFile: true }),
        configured: true,
      },
    );
    Deno.writeTextFileSync(path, "# mine\n");
    const again = await runInside(["config", "init"], { env });
    assert.equal(again.code, 4);
    assert.match(again.stderr, /exists already\nhint: /);
    assert.equal(Deno.readTextFileSync(path), "# mine\n");
  });
  const uncommented = (await configTemplate()).replaceAll(/^#(\w+ = )/gm, "$1");
  assert.equal(leaves({ properties: asSchema(parse(uncommented)) }).length, CONFIG_KEYS.length);
  assert.ok(parseConfig(uncommented, "/template.toml"));
});

/** Tables of the file as if they were of a schema; tables of the user's own making are values. */
function asSchema(value: object): Record<string, Schema> {
  return Object.fromEntries(
    Object.entries(value).map(([name, inner]) => [
      name,
      typeof inner === "object" && !Array.isArray(inner) &&
        !["profiles", "repositories", "commands"].includes(name)
        ? { properties: asSchema(inner) }
        : {},
    ]),
  );
}

Deno.test("[C-02, C-03] rules by repository and by command: validated as [delivery] is, the repository's before the command's", () => {
  const rules = parseConfig(
    `[commands.claude]
mode = "draft"
quiet_seconds = 2
delivery = { ack_mode = "acknowledged", max_attempts = 2 }
[repositories."a b"]
mode = "hold"
profile = "codex"
[repositories."a b".delivery]
max_attempts = 9
backoff_seconds = [1]
`,
    "/c.toml",
  );
  const windows = { commands: rules.commands!, repositories: rules.repositories! };
  const both = windowRule(windows, "a b", ["npx", "claude@2", "--x"]);
  assert.deepEqual([both.mode, both.profile, both.quiet_seconds], ["hold", "codex", 2]);
  assert.deepEqual(deliveryPolicy(DEFAULT_POLICY, both.delivery), {
    ...DEFAULT_POLICY,
    ackMode: "acknowledged",
    maxAttempts: 9,
    backoffSeconds: [1],
  });
  assert.deepEqual(windowRule(windows, "a b").delivery, { max_attempts: 9, backoff_seconds: [1] });
  assert.deepEqual(windowRule(windows, "constructor", ["toString"]), { delivery: {} });

  const wrong: [string, RegExp][] = [
    ["[commands.cat]\nmode = 'loud'\n", /commands\.cat\.mode is "loud"; allowed: .*"trigger"/],
    ["[commands.cat]\nobserve = 'off'\n", /unknown key "commands\.cat\.observe"/],
    ["[repositories.a]\nquiet_seconds = 61\n", /repositories\.a\.quiet_seconds is 61; allowed/],
    [
      "[repositories.a.delivery]\nmax_attempts = 0\n",
      /line 2: repositories\.a\.delivery\.max_attempts is 0; allowed/,
    ],
    ["[commands.a.delivery]\nattempts = 1\n", /unknown key "commands\.a\.delivery\.attempts"/],
  ];
  for (const [text, message] of wrong) {
    assert.throws(() => parseConfig(text, "/c.toml"), (error: Error) => {
      assert.match(error.message, message);
      return true;
    });
  }
});

Deno.test("[C-03] the version of the configuration follows what is in force, not how it is written", async () => {
  await withTempDir(async (dir) => {
    const version = async (text: string, env: Record<string, string> = {}) => {
      Deno.writeTextFileSync(`${dir}/c.toml`, text);
      const all: Record<string, string> = { HOME: dir, TAMQ_CONFIG: `${dir}/c.toml`, ...env };
      return configVersion(await loadSettings((name) => all[name]));
    };
    const plain = await version("");
    assert.match(plain, /^[0-9a-f]{16}$/);
    assert.equal(await version("# words\n[delivery]\nmax_attempts = 4\n"), plain);
    const other = await version("[commands.cat.delivery]\nmax_attempts = 5\n");
    assert.notEqual(other, plain);
    assert.notEqual(await version("", { TAMQ_SOCKET: "/elsewhere" }), plain);
    assert.equal(await version("[commands.cat]\ndelivery = { max_attempts = 5 }\n"), other);
  });
});

Deno.test("[C-02] config show: the value in force and whether default, file or environment gave it", async () => {
  await withTempDir(async (dir) => {
    const path = `${dir}/c.toml`;
    Deno.writeTextFileSync(path, `socket = "${dir}/s"\n[delivery]\nmax_attempts = 7\n`);
    const env = { HOME: dir, TAMQ_CONFIG: path, TAMQ_STATE_DIR: `${dir}/state` };
    const { stdout } = await runInside(["config", "show", "--json"], { env });
    const rows = new Map(
      stdout.trim().split("\n").map((line) => {
        const { key, value, from } = JSON.parse(line);
        return [key, [value, from]];
      }),
    );
    assert.equal(rows.size, CONFIG_KEYS.length);
    assert.deepEqual(rows.get("socket"), [`${dir}/s`, "file"]);
    assert.deepEqual(rows.get("state_dir"), [`${dir}/state`, "TAMQ_STATE_DIR"]);
    assert.deepEqual(rows.get("delivery.max_attempts"), [7, "file"]);
    assert.deepEqual(rows.get("delivery.ack_mode"), ["injected", "default"]);
    const people = await runInside(["config", "show"], { env });
    assert.match(people.stdout, /^KEY +FROM +VALUE\n/);
    assert.match(people.stdout, /\ndelivery\.max_attempts +file +7\n/);
    assert.match(people.stdout, /\nstatehub\.credential_command +default +-\n/);
  });
});

Deno.test("[C-03, L-01, L-05] a broken file stops every command but ping and stop, which warn and go by the defaults", async () => {
  await using world = await World.create();
  await Deno.mkdir(`${world.dir}/config/tamq`);
  await Deno.writeTextFile(
    `${world.dir}/config/tamq/config.toml`,
    "[delivery]\nmax_attempts = 0\n",
  );
  const said = /config\.toml, line 2: delivery\.max_attempts is 0; allowed: 1 to 9\n/;
  for (const args of [["status"], ["who"], ["history"], ["config", "check"], ["send", "To:a: x"]]) {
    const { code, stderr } = await runInside(args, { env: world.env });
    assert.equal(code, 2, args.join(" "));
    assert.match(stderr, said);
  }
  assert.equal((await runInside(["config", "path"], { env: world.env })).code, 0);
  const down = await world.tamq(["ping"]);
  assert.equal(down.code, 3);
  assert.match(down.stderr, /warning.*\ntamq: no service listens on .*\/tamq\.sock\n/);
  await world.mustTamq(["serve", "--detach"], { env: { TAMQ_CONFIG: "/dev/null" } });
  assert.match(await world.mustTamq(["ping"]), /^tamq .*, pid \d+\n$/);
  const stop = await world.tamq(["stop"]);
  assert.match(stop.stdout, /^service stopped \(pid \d+\)\n$/);
  assert.match(stop.stderr, /^tamq: warning: the configuration is not used: /);
  assert.match(stop.stderr, said);
});

Deno.test("[C-03] values are written in TOML so that they read back the same", () => {
  for (
    const value of [7, 0.5, true, 'a "b" \\ \n ü', [1, 2], [["a", "b"]], { a: { "b c": [1] } }]
  ) {
    assert.equal(JSON.stringify(parse(`x = ${toToml(value)}`)), JSON.stringify({ x: value }));
  }
});
