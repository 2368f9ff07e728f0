/** Windows in a real tmux server, private to each test. */
import assert from "node:assert/strict";
import { Tmux } from "../../lib/tmux/client.ts";
import {
  discard,
  type Opening,
  openWindow,
  ownSession,
  paneFacts,
  repoWindows,
} from "../../lib/tmux/windows.ts";
import { World } from "../helpers/world.ts";

/** Takes the place of a broker: a process that a window counts as live, until it reads a line. */
const stand_in = (repo: string): Opening => ({
  repo,
  argv: ["sh", "-c", "read line", "broker", `--repo=${repo}`],
  env: {},
});

const HOSTILE = [
  "two words",
  "a/b",
  "a:b.c",
  "#(touch pwned)",
  "#{pid}",
  "$(touch pwned)",
  "; touch pwned;",
  "-x",
  "100%",
  "'\"\\",
  "漢字",
  ";",
];

async function withServer(body: (tmux: Tmux, world: World) => Promise<void>, config = "") {
  await using world = await World.create();
  await Deno.writeTextFile(
    `${world.dir}/home/.tmux.conf`,
    `set -g default-shell /bin/sh\n${config}`,
  );
  await body(new Tmux({}, world.env), world);
}

Deno.test("[E-05] hostile names and words: each window is found by its repository, nothing of them is run", async () => {
  await withServer(async (tmux, world) => {
    const seen = `${world.dir}/seen`;
    await Deno.mkdir(seen);
    let place: Parameters<typeof openWindow>[1] = { kind: "new" };
    const ids = new Map<string, string>();
    for (const [i, repo] of HOSTILE.entries()) {
      // The words as they arrive, then a signal, then it waits to be told to end.
      const script =
        `for w; do printf '%s\\0' "$w"; done > ${seen}/${i}; tmux wait-for -S done${i}; read line`;
      const argv = ["sh", "-c", script, "broker", `--repo=${repo}`, ...HOSTILE];
      const made = await openWindow(tmux, place, { repo, argv, env: { MARK: repo } });
      place = { kind: "session", sessionId: made.sessionId };
      ids.set(repo, made.windowId);
      await tmux.run("wait-for", `done${i}`);
    }
    const windows = await repoWindows(tmux);
    assert.deepEqual(
      windows.map((w) => [w.repo, w.windowId, w.live]),
      [...ids].map((e) => [...e, true]),
    );
    for (const [i, repo] of HOSTILE.entries()) {
      const words = (await Deno.readTextFile(`${seen}/${i}`)).split("\0").slice(0, -1);
      assert.deepEqual(words, [`--repo=${repo}`, ...HOSTILE]);
    }
    const names = await tmux.run("list-windows", "-a", "-F", "#{window_id} #{window_name}");
    assert.ok(names.includes(`${ids.get("#(touch pwned)")} #(touch pwned)\n`), names);
    // What tmux would have run, it would have run in one of these folders.
    for (const dir of [world.dir, `${world.dir}/home`, seen, Deno.cwd()]) {
      assert.ok(![...Deno.readDirSync(dir)].some((entry) => entry.name === "pwned"), dir);
    }
  });
});

Deno.test("[E-02] a window keeps its repository whatever it is renamed to, wherever it is moved", async () => {
  await withServer(async (tmux) => {
    const made = await openWindow(tmux, { kind: "new" }, stand_in("alpha"));
    await tmux.run("rename-window", "-t", made.windowId, "✳ working");
    await tmux.run("new-session", "-d", "-s", "other");
    await tmux.run("move-window", "-s", made.windowId, "-t", "other:7");
    await tmux.run("new-session", "-d", "-s", "third");
    await tmux.run("link-window", "-s", made.windowId, "-t", "third:9");
    const windows = await repoWindows(tmux);
    assert.equal(windows.length, 1, "linked twice, it is one window");
    assert.deepEqual([windows[0]!.repo, windows[0]!.live], ["alpha", true]);
  });
});

Deno.test("[E-05] base indexes of 1 and sessions with like names: windows go to the exact session", async () => {
  await withServer(async (tmux) => {
    await tmux.run("new-session", "-d", "-s", "tamq-2");
    assert.equal(await ownSession(tmux), undefined);
    const first = await openWindow(tmux, { kind: "new" }, stand_in("api-2"));
    const sessionId = (await ownSession(tmux))!;
    assert.equal(first.sessionId, sessionId);
    const second = await openWindow(tmux, { kind: "session", sessionId }, stand_in("api"));
    assert.equal(second.sessionId, sessionId);
    const list = await tmux.run(
      "list-windows",
      "-t",
      "=tamq:",
      "-F",
      "#{window_index} #{window_id}",
    );
    assert.equal(list, `1 ${first.windowId}\n2 ${second.windowId}\n`);
    const pane = (await tmux.run("list-panes", "-t", second.windowId, "-F", "#{pane_id}")).trim();
    assert.deepEqual(await paneFacts(tmux, pane), {
      server_pid: (await tmux.serverPid())!,
      session: "tamq",
      session_id: sessionId,
      window_id: second.windowId,
      pane_id: pane,
    });
  }, "set -g base-index 1\nsetw -g pane-base-index 1\n");
});

Deno.test("[E-02] a window whose broker is gone is not live; what is the operator's in it stays", async () => {
  await withServer(async (tmux, world) => {
    const keep = await openWindow(tmux, { kind: "new" }, stand_in("keep"));
    const place = { kind: "session", sessionId: keep.sessionId } as const;
    const state = async (repo: string) => (await repoWindows(tmux)).find((w) => w.repo === repo);
    const end = async (repo: string, windowId: string) => {
      const panes = await tmux.run("list-panes", "-t", windowId, "-F", "#{pane_id}");
      await tmux.run("send-keys", "-t", panes.split("\n")[0]!, "Enter");
      await world.until("its end", async () => (await state(repo))?.live === false);
    };

    const alone = await openWindow(tmux, place, stand_in("alone"));
    await end("alone", alone.windowId);
    const dead = (await state("alone"))!;
    assert.deepEqual([dead.live, dead.otherPanes], [false, 0]);
    await discard(tmux, dead);
    assert.equal(await state("alone"), undefined);

    const shared = await openWindow(tmux, place, stand_in("shared"));
    await tmux.run("split-window", "-d", "-t", shared.windowId, "sh", "-c", "read line");
    assert.equal((await state("shared"))!.live, true);
    await end("shared", shared.windowId);
    const left = (await state("shared"))!;
    assert.deepEqual([left.live, left.otherPanes], [false, 1]);
    await discard(tmux, left);
    assert.equal(await state("shared"), undefined);
    const panes = await tmux.run("list-panes", "-t", shared.windowId, "-F", "#{pane_dead}");
    assert.equal(panes, "0\n", "the operator's own pane is left, the dead one is gone");

    const replaced = await openWindow(tmux, place, stand_in("replaced"));
    await tmux.run("respawn-pane", "-k", "-t", replaced.windowId, "sh", "-c", "read line");
    const other = (await state("replaced"))!;
    assert.deepEqual([other.live, other.otherPanes], [false, 1]);
    assert.equal((await state("keep"))!.live, true);
  }, "set -g remain-on-exit on\n");
});

Deno.test("[E-05] a window gets the environment that is asked for, and looking for windows starts no server", async () => {
  await withServer(async (tmux, world) => {
    const script = `printf '%s|%s' "$A" "$B" > ${world.dir}/env; tmux wait-for -S done; read line`;
    const made = await openWindow(tmux, { kind: "new" }, {
      repo: "alpha",
      argv: ["sh", "-c", script],
      env: { A: "x=#(touch pwned) ;", B: "" },
    });
    await tmux.run("wait-for", "done");
    assert.equal(await Deno.readTextFile(`${world.dir}/env`), "x=#(touch pwned) ;|");
    await tmux.run("kill-window", "-t", made.windowId);
    assert.deepEqual(await repoWindows(tmux), []);
    assert.equal(await tmux.serverPid(), undefined, "looking at it starts no server");
  });
});
