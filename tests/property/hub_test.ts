/** The hub's store against a plain model of it, over random sequences of changes. */
import assert from "node:assert/strict";
import fc from "fast-check";
import { TamqError } from "../../lib/base/errors.ts";
import { systemRandom } from "../../lib/base/random.ts";
import { TASK_MOVES, TASK_STATUSES, type TaskStatus } from "../../lib/hub/rules.ts";
import type { Change, EditTask, Task } from "../../lib/hub/schema.ts";
import { HubStore } from "../../lib/hub/store/hub_store.ts";
import { FakeClock } from "../helpers/clock.ts";
import { withTempDir } from "../helpers/temp.ts";

const NAMES = ["a", "b", "c", "d", "e"];
const name = fc.constantFrom(...NAMES);

type Step =
  | { do: "edit"; id: string; stale: boolean; body: EditTask }
  | { do: "read" };
const step: fc.Arbitrary<Step> = fc.oneof(
  {
    weight: 6,
    arbitrary: fc.record({
      do: fc.constant("edit" as const),
      id: name,
      stale: fc.integer({ min: 0, max: 9 }).map((n) => n === 0),
      body: fc.record({
        // Mostly to and fro between these two, or dependents would rarely have something to be told.
        status: fc.constantFrom(...TASK_STATUSES, "ready", "ready", "done", "done", "done"),
        dependencies: fc.uniqueArray(name, { maxLength: 2 }),
        needs_human: fc.boolean(),
        title: fc.constantFrom("x", "y"),
      }, { requiredKeys: [] }).map((body) =>
        body.status === "blocked" ? { ...body, block: { kind: "human" as const, note: "" } } : body
      ),
    }),
  },
  { weight: 2, arbitrary: fc.record({ do: fc.constant("read" as const) }) },
);

interface Model {
  status: TaskStatus;
  dependencies: string[];
}

Deno.test("[K-18][K-19] whatever is done: no cycle, true dependencies, growing revisions, a feed that ends at the truth", async () => {
  await withTempDir(async (dir) => {
    let run = 0;
    let told = 0;
    await fc.assert(
      fc.asyncProperty(
        fc.array(step, { minLength: 15, maxLength: 40, size: "max" }),
        async (steps) => {
          const store = await HubStore.open({
            path: `${dir}/${run++}.sqlite3`,
            clock: new FakeClock(),
            random: systemRandom,
            busyTimeoutMs: 100,
          });
          try {
            told += await play(store, steps);
          } finally {
            await store.close();
          }
        },
      ),
      { numRuns: 40 },
    );
    assert.ok(told > 10, `only ${told} dependents were told of anything`);
  });
});

/** Returns how often a dependent was told of a change. */
async function play(store: HubStore, steps: readonly Step[]): Promise<number> {
  const mutate = (work: () => Task) =>
    store.mutate({
      key: undefined,
      digest: "",
      kind: "task",
      idOf: (task) => task.task_id,
      work,
      again: (id) => store.tasks.get(id),
    });
  let told = 0;
  const model = new Map<string, Model>();
  for (const [i, id] of NAMES.entries()) {
    // Each waits for the one before at first, so that there is somebody to tell.
    const dependencies = NAMES.slice(Math.max(0, i - 1), i);
    const input = {
      task_id: id,
      title: "x",
      repo: "alpha",
      status: "ready",
      dependencies,
    } as const;
    await mutate(() => store.tasks.create({ ...input, dependencies }));
    model.set(id, { status: "ready", dependencies });
  }
  /** What a reader of the feed believes. */
  const seen = new Map<string, Task>();
  let cursor: string | undefined;
  const read = () => {
    const page = store.changes(cursor, ["task"], 500);
    for (const change of page.changes as Extract<Change, { kind: "task" }>[]) {
      const before = seen.get(change.source_id);
      assert.ok((before?.revision ?? 0) < change.record.revision, "each change is told once");
      seen.set(change.source_id, change.record);
    }
    cursor = page.next_cursor;
  };
  for (const one of steps) {
    if (one.do === "read") {
      read();
      continue;
    }
    const before = store.tasks.get(one.id);
    const dependents = NAMES.filter((id) => model.get(id)!.dependencies.includes(one.id))
      .map((id) => store.tasks.get(id));
    const expected = one.stale ? before.revision + 1 : before.revision;
    let after: Task;
    try {
      after = (await mutate(() => store.tasks.edit(one.id, expected, one.body))).record;
    } catch (error) {
      assert.ok(error instanceof TamqError, String(error));
      assert.ok(one.stale || mayRefuse(model, one.id, one.body), `${error.reason} without cause`);
      assert.deepEqual(store.tasks.get(one.id), before, "a refusal changes nothing");
      continue;
    }
    assert.ok(!one.stale && !mayRefuse(model, one.id, one.body), "should have been refused");
    const own = model.get(one.id)!;
    const wasDone = own.status === "done";
    Object.assign(own, {
      status: one.body.status ?? own.status,
      dependencies: one.body.dependencies ?? own.dependencies,
    });
    assert.ok(after.wake.revision <= after.revision && after.revision >= before.revision);
    if (wasDone !== (own.status === "done")) {
      for (const dependent of dependents) {
        const now = store.tasks.get(dependent.task_id);
        const open = dependent.status !== "done" && dependent.status !== "cancelled";
        if (dependent.task_id !== one.id) {
          assert.equal(now.revision, dependent.revision + 1);
          assert.equal(now.wake.revision === dependent.revision + 1, open, "dependents are told");
          if (open) told++;
        }
      }
    }
  }
  read();
  for (const id of NAMES) {
    const task = store.tasks.get(id);
    const { status, dependencies } = model.get(id)!;
    assert.equal(task.status, status);
    assert.deepEqual(task.dependencies, dependencies);
    assert.deepEqual(task.unsatisfied, dependencies.filter((d) => model.get(d)!.status !== "done"));
    assert.deepEqual(seen.get(id), task, "the reader of the feed knows what is");
    assert.ok(!reaches(model, dependencies, id));
  }
  return told;
}

function reaches(model: Map<string, Model>, from: readonly string[], to: string): boolean {
  return from.some((id) => id === to || reaches(model, model.get(id)!.dependencies, to));
}

/** The rules once more, in other words. */
function mayRefuse(model: Map<string, Model>, id: string, body: EditTask): boolean {
  const own = model.get(id)!;
  const dependencies = body.dependencies ?? own.dependencies;
  if (body.dependencies !== undefined && reaches(model, dependencies, id)) return true;
  const to = body.status ?? own.status;
  if (to === own.status) return false;
  if (!TASK_MOVES[own.status].includes(to)) return true;
  const waits = dependencies.some((d) => model.get(d)!.status !== "done");
  return waits && (to === "active" || to === "done");
}
