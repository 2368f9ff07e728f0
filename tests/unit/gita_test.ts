/** The registry reader, on files as gita writes them and as they can get broken. */
import assert from "node:assert/strict";
import { TamqError } from "../../lib/base/errors.ts";
import { onProbe } from "../../lib/base/probe.ts";
import { gitaRegistry } from "../../lib/gita.ts";
import { withTempDir } from "../helpers/temp.ts";

interface Place {
  dir: string;
  csv: string;
  registry: ReturnType<typeof gitaRegistry>;
  /** A folder that counts as a git repository. */
  repo(name: string): string;
}

async function withRegistry(
  body: (place: Place) => void | Promise<void>,
  now: () => number = () => Number.MAX_SAFE_INTEGER,
) {
  await withTempDir(async (dir) => {
    Deno.mkdirSync(`${dir}/gita`);
    const env: Record<string, string> = { XDG_CONFIG_HOME: dir };
    await body({
      dir,
      csv: `${dir}/gita/repos.csv`,
      registry: gitaRegistry((name) => env[name], { now }),
      repo(name) {
        Deno.mkdirSync(`${dir}/${name}/.git`, { recursive: true });
        return `${dir}/${name}`;
      },
    });
  });
}

function refusal(body: () => unknown): TamqError {
  try {
    body();
  } catch (error) {
    assert.ok(error instanceof TamqError, String(error));
    assert.equal(error.code, "UNAVAILABLE");
    assert.equal(error.reason, "registry_unavailable");
    assert.ok(error.hint, "a hint says how to mend it");
    return error;
  }
  throw new Error("it was accepted");
}

Deno.test("[E-04] CRLF, quotes, missing and extra columns, and odd names are read as gita means them", async () => {
  await withRegistry(({ csv, registry, repo }) => {
    const plain = repo("plain");
    const odd = ["a/b", "a:b", "two words", " leading", 'say "hi"', "with,comma", "#(touch pwned)"];
    const rows = odd.map((name) => {
      const quoted = /[",]/.test(name) ? `"${name.replaceAll('"', '""')}"` : name;
      return `${plain},${quoted},,`;
    });
    Deno.writeTextFileSync(
      csv,
      [...rows, `${plain},short`, "", `${plain},long,,-x y,more,and more`].join("\r\n") + "\r\n",
    );
    assert.deepEqual(registry.names(), [...odd, "short", "long"]);
    for (const name of registry.names()) {
      assert.deepEqual(registry.find(name), { name, path: plain });
    }
  });
});

Deno.test("[E-04] a quoted path may hold commas, quotes and line breaks", async () => {
  await withRegistry(({ csv, registry, repo }) => {
    const path = repo('p,"q"\nr');
    Deno.writeTextFileSync(csv, `"${path.replaceAll('"', '""')}",it,,\n`);
    assert.deepEqual(registry.find("it"), { name: "it", path });
  });
});

Deno.test("[E-04] rows whose folder is gone or no git repository are unknown; bare ones and worktrees are known", async () => {
  await withRegistry(({ dir, csv, registry, repo }) => {
    Deno.mkdirSync(`${dir}/no-git`);
    Deno.mkdirSync(`${dir}/worktree`);
    Deno.writeTextFileSync(`${dir}/worktree/.git`, "gitdir: elsewhere\n");
    for (const part of ["objects", "refs"]) {
      Deno.mkdirSync(`${dir}/bare/${part}`, { recursive: true });
    }
    Deno.writeTextFileSync(`${dir}/bare/HEAD`, "ref: refs/heads/main\n");
    repo("work");
    const names = ["gone", "no-git", "worktree", "bare", "work"];
    Deno.writeTextFileSync(csv, names.map((name) => `${dir}/${name},${name},,\r\n`).join(""));
    assert.deepEqual(
      names.filter((name) => registry.find(name) === "unknown"),
      ["gone", "no-git"],
    );
    assert.equal(registry.find("Work"), "unknown", "names are exact");
    assert.equal(registry.find("wor*"), "unknown", "no wildcards");
  });
});

Deno.test("[E-04] two rows of one name are ambiguous, unless the folder of one is gone", async () => {
  await withRegistry(({ dir, csv, registry, repo }) => {
    const one = repo("one");
    const two = repo("two");
    Deno.writeTextFileSync(
      csv,
      `${one},twin,,\r\n${two},twin,,\r\n${dir}/gone,half,,\r\n${two},half,,\r\n`,
    );
    assert.deepEqual(registry.names(), ["twin", "half"]);
    assert.equal(registry.find("twin"), "ambiguous");
    assert.deepEqual(registry.find("half"), { name: "half", path: two });
  });
});

Deno.test("[E-04] relative paths are resolved against the current directory", async () => {
  await withRegistry(({ csv, registry }) => {
    Deno.writeTextFileSync(csv, "some/where,rel,,\r\n");
    assert.deepEqual(registry.names(), ["rel"]);
    assert.equal(registry.find("rel"), "unknown");
  });
});

Deno.test("[E-04] the file of gita before May 2021 is read when there is no newer one", async () => {
  await withRegistry(({ dir, csv, registry, repo }) => {
    const path = repo("old");
    Deno.writeTextFileSync(`${dir}/gita/repo_path`, `${path},old name\n`);
    assert.deepEqual(registry.find("old name"), { name: "old name", path });
    Deno.writeTextFileSync(csv, `${path},new name,,\r\n`);
    assert.deepEqual(registry.names(), ["new name"]);
    assert.equal(registry.source, csv);
  });
});

Deno.test("[E-04, T-07] each call sees the file as it is now", async () => {
  await withRegistry(({ csv, registry, repo }) => {
    const path = repo("r");
    Deno.writeTextFileSync(csv, `${path},one,,\r\n`);
    assert.deepEqual(registry.names(), ["one"]);
    Deno.writeTextFileSync(csv, `${path},one,,\r\n${path},two,,\r\n`);
    assert.deepEqual(registry.names(), ["one", "two"]);
    Deno.removeSync(csv);
    refusal(() => registry.names());
    Deno.writeTextFileSync(csv, "");
    assert.deepEqual(registry.names(), []);
  });
});

Deno.test("[E-04] a file read within the tick of its last change is read again; a settled one is not", async () => {
  // Two writes in one tick leave the same times and perhaps the same size.
  const reads = async (age: number) => {
    let count = 0;
    const written = 1_900_000_000;
    await withRegistry(({ csv, registry, repo }) => {
      Deno.writeTextFileSync(csv, `${repo("r")},one,,\r\n`);
      Deno.utimeSync(csv, written, written);
      const stop = onProbe("gita.read", (path) => path === csv && count++);
      registry.names();
      registry.names();
      registry.find("one");
      stop();
    }, () => written * 1000 + age);
    return count;
  };
  assert.equal(await reads(10), 3);
  assert.equal(await reads(10_000), 1);
});

Deno.test("[E-04] missing, unreadable and malformed registries say what is wrong, where, and the way out", async () => {
  await withRegistry(({ dir, csv, registry }) => {
    assert.match(refusal(() => registry.names()).message, /no gita registry.*repos\.csv/);
    assert.match(refusal(() => registry.find("x")).hint!, /gita add/);

    Deno.mkdirSync(csv);
    assert.match(refusal(() => registry.names()).message, /repos\.csv: it is no regular file/);
    Deno.removeSync(csv);

    const bad: [string | Uint8Array, RegExp][] = [
      ["/a,one,,\r\n/b\r\n", /line 2: path or name is missing/],
      ["/a,one,,\r\n,two,,\r\n", /line 2/],
      ['/a,one,,\n/b,two,,\n"/c,three\n/d,four\n', /line 3: a quote is never closed/],
      ['"/a"x,one,,\n', /line 1: text follows a closing quote/],
      [new Uint8Array([47, 97, 44, 120, 10, 47, 255, 44, 121, 10]), /line 2: not valid UTF-8/],
      ["/a\0b,one,,\n", /line 1: the path holds a NUL/],
    ];
    for (const [content, message] of bad) {
      if (typeof content === "string") Deno.writeTextFileSync(csv, content);
      else Deno.writeFileSync(csv, content);
      const error = refusal(() => registry.names());
      assert.match(error.message, message);
      assert.ok(error.message.includes(`${dir}/gita/repos.csv`));
      assert.match(error.hint!, /gita add/);
    }
    Deno.writeTextFileSync(csv, "/a,mended,,\n");
    assert.deepEqual(registry.names(), ["mended"]);
  });
});

Deno.test("[E-04] the registry's folder: GITA_PROJECT_HOME, XDG_CONFIG_HOME, ~/.config; empty counts as unset", () => {
  const source = (env: Record<string, string>) => gitaRegistry((name) => env[name]).source;
  const all = { GITA_PROJECT_HOME: "/g", XDG_CONFIG_HOME: "/x", HOME: "/h" };
  assert.equal(source(all), "/g/gita/repos.csv");
  assert.equal(source({ ...all, GITA_PROJECT_HOME: "" }), "/x/gita/repos.csv");
  assert.equal(source({ HOME: "/h", XDG_CONFIG_HOME: "" }), "/h/.config/gita/repos.csv");
  assert.match(refusal(() => gitaRegistry(() => undefined).names()).message, /HOME is not set/);
});
