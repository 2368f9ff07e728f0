/** The registry reader against files that the real gita wrote. */
import assert from "node:assert/strict";
import { gitaRegistry } from "../../lib/gita.ts";
import { World } from "../helpers/world.ts";

const reader = (world: World) => gitaRegistry((name) => world.env[name]);

Deno.test("[E-04, V-01] names that the real gita writes are found, with their paths", async () => {
  await using world = await World.create(["alpha", "two words", "with,comma", 'q"uote', "x/same"]);
  // A basename that is taken: gita puts the parent folder in front.
  await world.addRepo("y/same");
  const registry = reader(world);
  const listed = registry.names();
  assert.equal(listed.length, 6);
  assert.ok(listed.some((name) => name.includes("/")), `a name with a slash in ${listed}`);
  for (const name of listed) {
    const found = registry.find(name);
    assert.ok(typeof found === "object", `${name}: ${JSON.stringify(found)}`);
    assert.equal(found.path, (await world.must(["gita", "ls", name])).replace(/\n$/, ""));
  }
});

Deno.test("[E-04, T-07] gita add, rename and rm are seen by the next call", async () => {
  await using world = await World.create(["alpha"]);
  const registry = reader(world);
  assert.deepEqual(registry.names(), ["alpha"]);
  await world.addRepo("beta");
  assert.equal(typeof registry.find("beta"), "object");
  await world.must(["gita", "rename", "beta", "a:b"]);
  assert.equal(registry.find("beta"), "unknown");
  assert.equal(typeof registry.find("a:b"), "object");
  await world.must(["gita", "rm", "alpha"]);
  assert.equal(registry.find("alpha"), "unknown");
  await Deno.remove(world.repo("beta"), { recursive: true });
  assert.equal(registry.find("a:b"), "unknown");
});

Deno.test("[E-04] worktrees and bare repositories that gita lists are known", async () => {
  await using world = await World.create(["alpha"]);
  const commit = ["-c", "user.name=t", "-c", "user.email=t@t", "commit", "-q", "--allow-empty"];
  await world.must(["git", "-C", world.repo("alpha"), ...commit, "-m", "first"]);
  const tree = world.repo("tree");
  await world.must(["git", "-C", world.repo("alpha"), "worktree", "add", "-q", tree]);
  await world.must(["git", "init", "-q", "--bare", world.repo("bare.git")]);
  await world.must(["gita", "add", tree]);
  await world.must(["gita", "add", "-b", world.repo("bare.git")]);
  const registry = reader(world);
  assert.deepEqual([...registry.names()].sort(), ["alpha", "bare.git", "tree"]);
  for (const name of registry.names()) assert.equal(typeof registry.find(name), "object", name);
});
