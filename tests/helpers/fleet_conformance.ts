/** What every store of the fleet must do, whichever it is (G-03). */
import assert from "node:assert/strict";
import { create } from "@bufbuild/protobuf";
import { ResultCode } from "../../lib/fleet/gen/common_pb.ts";
import { GetExecutionPermitResponseSchema } from "../../lib/fleet/gen/dispatcher_pb.ts";
import { once } from "../../lib/fleet/idempotency.ts";
import type { FleetStore, ListOptions } from "../../lib/fleet/ports.ts";
import { withTempDir } from "./temp.ts";

/** Opens a store on what lies in `dir`; several at once share it. */
export type OpenStore = (dir: string) => Promise<FleetStore>;

export function conformance(name: string, open: OpenStore): void {
  const test = (title: string, body: (store: FleetStore, dir: string) => Promise<void>) =>
    Deno.test(`[G-03] ${name}: ${title}`, () =>
      withTempDir(async (dir) => {
        const store = await open(dir);
        try {
          await body(store, dir);
        } finally {
          await store.close();
        }
      }));

  test("a key is taken once, and keeps what it holds", async (store) => {
    await store.commit(async (tx) => {
      assert.equal(await tx.insert("counter", "a", { value: 1 }), true);
      assert.equal(await tx.insert("counter", "a", { value: 2 }), false);
      assert.deepEqual(await tx.get("counter", "a"), { value: { value: 1 }, revision: 1 });
      assert.equal(await tx.get("counter", "b"), undefined);
      assert.equal(await tx.insert("boot", "a", { fenced: false }), true);
    });
  });

  test("an update with an old revision changes nothing", async (store) => {
    await store.commit(async (tx) => {
      await tx.insert("counter", "a", { value: 1 });
      assert.equal(await tx.update("counter", "a", 1, { value: 2 }), true);
      assert.equal(await tx.update("counter", "a", 1, { value: 3 }), false);
      assert.equal(await tx.update("counter", "b", 1, { value: 3 }), false);
      assert.deepEqual(await tx.get("counter", "a"), { value: { value: 2 }, revision: 2 });
    });
  });

  test("lists keep order, groups and limits", async (store) => {
    await store.commit(async (tx) => {
      for (const [key, group] of [["c", "x"], ["a", "y"], ["b", "x"], ["d", "x"]] as const) {
        await tx.insert("counter", key, { value: 0 }, group);
      }
      const keys = async (options: ListOptions) =>
        (await tx.list("counter", options)).map(({ key }) => key).join("");
      assert.equal(await keys({}), "cabd");
      assert.equal(await keys({ group: "x" }), "cbd");
      assert.equal(await keys({ group: "x", newest: true, limit: 2 }), "db");
      await tx.update("counter", "b", 1, { value: 0 }, "y");
      assert.equal(await keys({ group: "y" }), "ab");
      // An update that names no group leaves it.
      await tx.update("counter", "b", 2, { value: 1 });
      assert.equal(await keys({ group: "y" }), "ab");
    });
  });

  test("what throws leaves nothing, what stands beside it stays", async (store) => {
    const failed = store.commit(async (tx) => {
      await tx.insert("counter", "a", { value: 1 });
      throw new Error("no");
    });
    const done = store.commit((tx) => tx.insert("counter", "b", { value: 1 }));
    await assert.rejects(failed, /no/);
    assert.equal(await done, true);
    await store.commit(async (tx) => {
      assert.equal(await tx.get("counter", "a"), undefined);
      assert.notEqual(await tx.get("counter", "b"), undefined);
    });
  });

  test("transactions exclude each other, within a process and between two", async (store, dir) => {
    const other = await open(dir);
    try {
      await store.commit((tx) => tx.insert("counter", "n", { value: 0 }));
      const add = (one: FleetStore) =>
        one.commit(async (tx) => {
          const { value, revision } = (await tx.get("counter", "n"))!;
          assert.ok(await tx.update("counter", "n", revision, { value: value.value + 1 }));
        });
      await Promise.all(Array.from({ length: 200 }, (_, n) => add(n % 2 === 0 ? store : other)));
      assert.equal((await other.commit((tx) => tx.get("counter", "n")))?.value.value, 200);
    } finally {
      await other.close();
    }
  });

  test("what was committed is there after the store was closed", async (store, dir) => {
    await store.commit((tx) => tx.insert("counter", "a", { value: 7 }));
    const again = await open(dir);
    try {
      assert.equal((await again.commit((tx) => tx.get("counter", "a")))?.value.value, 7);
    } finally {
      await again.close();
    }
  });

  test(
    "one identity, one effect: concurrent identical requests run once, other content conflicts",
    async (store, dir) => {
      const other = await open(dir);
      try {
        let ran = 0;
        const scope = { agentId: "a1", operationId: "op", key: "k" };
        const send = (on: FleetStore, digest: string, at = scope, method = "M") =>
          on.commit((tx) =>
            once(tx, at, { method, digest, now: 1 }, GetExecutionPermitResponseSchema, () => {
              ran++;
              return Promise.resolve(
                create(GetExecutionPermitResponseSchema, {
                  result: ResultCode.APPLIED,
                  permit: { permitId: `p${ran}` },
                }),
              );
            })
          );
        const answers = await Promise.all(
          Array.from({ length: 50 }, (_, n) => send(n % 2 === 0 ? store : other, "d1")),
        );
        assert.deepEqual([...new Set(answers.map((one) => one.permit?.permitId))], ["p1"]);
        assert.equal(ran, 1);
        const conflict = { code: "ABORTED", reason: "idempotency_conflict" };
        await assert.rejects(send(store, "d2"), conflict);
        await assert.rejects(send(store, "d1", scope, "Other"), conflict);
        assert.equal((await send(other, "d1")).permit?.permitId, "p1");
        // Each part of the scope counts.
        for (const part of ["agentId", "operationId", "key"] as const) {
          await send(store, "d2", { ...scope, [part]: "other" });
        }
        assert.equal(ran, 4);
      } finally {
        await other.close();
      }
    },
  );
}
