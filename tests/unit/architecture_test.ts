/** The rules of the architecture page, kept by reading the code: who may import whom, what stands where. */
import assert from "node:assert/strict";
import { runProcess } from "../helpers/world.ts";

const ROOT = new URL("../../", import.meta.url).pathname;
/** Made by a generator from lib/fleet/proto, not written. */
const GENERATED = "lib/fleet/gen/";

/** Room of a file: the longest prefix that fits decides. */
const ROOMS: Record<string, string> = {
  "main.ts": "main",
  "main_single.ts": "main",
  "mod.ts": "mod",
  "lib/base/": "base",
  "lib/model/": "model",
  "lib/protocol/": "protocol",
  "lib/sqlite/": "sqlite",
  "lib/store/": "store",
  "lib/peer_ffi.ts": "ipc",
  "lib/ipc/": "ipc",
  "lib/socket.ts": "ipc",
  "lib/pty_ffi.ts": "pty",
  "lib/pty/": "pty",
  "lib/tmux/": "tmux",
  "lib/gita.ts": "gita",
  "lib/config.ts": "config",
  "lib/config_keys.ts": "config",
  "lib/config_schema.ts": "config",
  "lib/queue/": "queue",
  "lib/queue.ts": "queue",
  "lib/attachments.ts": "queue",
  "lib/client.ts": "client",
  "lib/hub/": "hub",
  "lib/coord/": "coord",
  "lib/fleet/": "fleet",
  "lib/cli/": "cli",
  "lib/": "roots", // broker, daemon, handlers and what they are composed of
};

/** Who may import whom, beside its own room. */
const ALLOWED: Record<string, readonly string[]> = {
  base: [],
  model: ["base"],
  protocol: ["base", "model"],
  config: ["base", "model"],
  sqlite: ["base", "model"],
  ipc: ["base", "model", "protocol"],
  store: ["base", "model", "protocol", "sqlite"],
  gita: ["base", "model"],
  tmux: ["base", "model"],
  // Stores are reached over interfaces: types only, checked below.
  queue: ["base", "model", "protocol", "store", "sqlite"],
  client: ["base", "model", "protocol", "ipc", "config"],
  pty: ["base", "model", "protocol", "client", "config"],
  hub: ["base", "model", "protocol", "config", "sqlite", "ipc"],
  // Of the hub only its interface: record types and routes.
  coord: ["base", "model", "protocol", "config", "sqlite", "ipc", "client", "hub"],
  fleet: ["base", "model", "protocol", "config", "sqlite", "ipc", "client"],
  roots: [
    "base",
    "model",
    "protocol",
    "config",
    "sqlite",
    "ipc",
    "store",
    "gita",
    "tmux",
    "queue",
    "client",
    "pty",
  ],
  cli: [
    "base",
    "model",
    "protocol",
    "config",
    "sqlite",
    "ipc",
    "store",
    "gita",
    "tmux",
    "client",
    "roots",
    "hub",
    "coord",
    "fleet",
  ],
  main: ["base", "cli"],
  mod: ["base", "model", "protocol", "client", "config", "coord"],
};

interface Dependency {
  specifier: string;
  isDynamic?: boolean;
  code?: { specifier?: string };
  type?: { specifier?: string };
}
interface Graph {
  modules: { specifier: string; dependencies?: Dependency[] }[];
}

function roomOf(file: string): string {
  const prefix =
    Object.keys(ROOMS).filter((key) => key.endsWith("/") ? file.startsWith(key) : file === key)
      .sort((a, b) => b.length - a.length)[0];
  assert.ok(prefix, `${file} has no room: add it to the table`);
  return ROOMS[prefix]!;
}

interface Arrow {
  from: string;
  to: string;
  dynamic: boolean;
  /** False when only types cross. */
  code: boolean;
}

async function arrows(): Promise<Arrow[]> {
  const found: Arrow[] = [];
  const seen = new Set<string>();
  for (const root of ["main.ts", "main_single.ts", "mod.ts"]) {
    const info = await runProcess([Deno.execPath(), "info", "--json", root], { cwd: ROOT });
    const graph = JSON.parse(info.stdout) as Graph;
    const local = (specifier: string | undefined) =>
      specifier?.startsWith(`file://${ROOT}`) ? specifier.slice(7 + ROOT.length) : undefined;
    for (const module of graph.modules) {
      const from = local(module.specifier);
      if (from === undefined) continue;
      for (const dependency of module.dependencies ?? []) {
        const code = dependency.code?.specifier;
        const target = code ?? dependency.type?.specifier;
        const to = local(target) ?? target ?? dependency.specifier;
        const arrow = {
          from,
          to,
          dynamic: dependency.isDynamic ?? false,
          code: code !== undefined,
        };
        const key = JSON.stringify(arrow);
        if (!seen.has(key)) found.push(arrow);
        seen.add(key);
      }
    }
  }
  assert.ok(found.length > 50, "the import graph was read");
  return found;
}

const isLocal = (arrow: Arrow) => /^(lib\/|main\.ts|main_single\.ts|mod\.ts)/.test(arrow.to);

async function sources(): Promise<{ file: string; text: string }[]> {
  const found: { file: string; text: string }[] = [];
  const walk = async (dir: string) => {
    for await (const entry of Deno.readDir(ROOT + dir)) {
      const file = `${dir}/${entry.name}`;
      if (entry.isDirectory) await walk(file);
      else if (file.endsWith(".ts") && !file.startsWith(GENERATED)) {
        found.push({ file, text: await Deno.readTextFile(ROOT + file) });
      }
    }
  };
  await walk("lib");
  assert.ok(found.length > 20);
  return found;
}

/** The code without comments and string contents, roughly: enough to find calls. */
function bare(text: string): string {
  return text.replace(/\/\*[\s\S]*?\*\//g, "").replace(/(^|[^:"'`])\/\/.*$/gm, "$1");
}

Deno.test("[V-01] imports follow the architecture's directions", async () => {
  const wrong = (await arrows()).filter(isLocal).filter(({ from, to }) => {
    const [a, b] = [roomOf(from), roomOf(to)];
    return a !== b && !ALLOWED[a]!.includes(b);
  });
  assert.deepEqual(wrong.map(({ from, to }) => `${from} -> ${to}`), []);
});

Deno.test("[V-01] the queue reaches stores by interface: only types cross", async () => {
  const wrong = (await arrows()).filter(({ from, to, code }) =>
    roomOf(from) === "queue" && code && /^lib\/(store|sqlite)\//.test(to)
  );
  // `deno info` resolves type-only imports as code as well, so the text of the import decides.
  const culprits: string[] = [];
  for (const { from, to } of wrong) {
    const text = await Deno.readTextFile(ROOT + from);
    const name = to.split("/").at(-1)!;
    const statements = text.match(/import[^;]*;/g) ?? [];
    for (const statement of statements) {
      if (statement.includes(`/${name}"`) && !/^import type\b/.test(statement)) {
        culprits.push(`${from} -> ${to}`);
      }
    }
  }
  assert.deepEqual(culprits, []);
});

Deno.test("[V-01] there is no cycle of imports", async () => {
  const next = new Map<string, string[]>();
  for (const { from, to, dynamic } of (await arrows()).filter(isLocal)) {
    if (!dynamic) next.set(from, [...(next.get(from) ?? []), to]);
  }
  const done = new Set<string>();
  const visit = (file: string, path: string[]) => {
    assert.ok(!path.includes(file), `cycle: ${[...path, file].join(" -> ")}`);
    if (done.has(file)) return;
    for (const to of next.get(file) ?? []) visit(to, [...path, file]);
    done.add(file);
  };
  for (const file of next.keys()) visit(file, []);
});

Deno.test("[V-05] ordinary verbs load no SQLite, no FFI, no zod, no node: modules", async () => {
  const all = (await arrows()).filter((arrow) => !arrow.dynamic);
  for (const verb of ["send", "ping", "status", "history", "ack"]) {
    const start = [`lib/cli/verbs/${verb}.ts`, "main.ts"];
    const seen = new Set(start);
    for (const file of seen) {
      const text = file.endsWith(".ts") && !file.includes(":")
        ? await Deno.readTextFile(ROOT + file)
        : "";
      for (const arrow of all.filter(({ from }) => from === file)) {
        // Type-only imports cost nothing at run time.
        const name = arrow.to.split("/").at(-1)!;
        const statement = (text.match(/(import|export)[^;]*;/g) ?? []).filter((s) =>
          s.includes(`/${name}"`)
        );
        const typesOnly = statement.length > 0 &&
          statement.every((s) => /^(import|export) type\b/.test(s));
        if (!typesOnly) seen.add(arrow.to);
      }
    }
    const heavy = [...seen].filter((file) =>
      /^node:|zod|smol-toml|_ffi\.ts$|^lib\/(store|sqlite|pty)\//.test(file)
    );
    assert.deepEqual(heavy, [], `tamq ${verb}`);
  }
});

Deno.test("[V-01] clocks, randomness, FFI and SQL each stand in their one place", async () => {
  const wrong: string[] = [];
  for (const { file, text } of await sources()) {
    const code = bare(text);
    const must = (pattern: RegExp, home: (file: string) => boolean) => {
      const match = pattern.exec(code);
      if (match && !home(file)) wrong.push(`${file}: ${match[0]}`);
    };
    must(
      /\bDate\.now\(|\bMath\.random\(|\bsetTimeout\(|\bsetInterval\(|new Date\(\)|performance\.now\(|getRandomValues|randomUUID/,
      (f) => f.startsWith("lib/base/"),
    );
    must(/\bDeno\.dlopen\(|\bDeno\.UnsafePointer/, (f) => f.endsWith("_ffi.ts"));
    must(
      /\b(SELECT .+ FROM|INSERT (OR \w+ )?INTO|UPDATE \w+ SET|DELETE FROM|CREATE TABLE|PRAGMA) ?/,
      (f) => f.startsWith("lib/sqlite/") || f.includes("/store/"),
    );
  }
  assert.deepEqual(wrong, []);
});

Deno.test("[V-01] a file is one room: at most 400 lines", async () => {
  const long = (await sources()).filter(({ text }) => text.split("\n").length > 401);
  assert.deepEqual(long.map(({ file }) => file), []);
});
