/** The State Hub over its real socket: records, rules, feed. */
import assert from "node:assert/strict";
import { TamqError } from "../../lib/base/errors.ts";
import type { StateHubClient } from "../../lib/coord/statehub_client.ts";
import type { Change } from "../../lib/hub/schema.ts";
import type { Receipt } from "../../lib/model/receipt.ts";
import { withHub } from "../helpers/hub.ts";

const reason = (wanted: string) => (error: unknown) =>
  error instanceof TamqError && error.reason === wanted;

async function addTask(client: StateHubClient, id: string, ...dependencies: string[]) {
  const body = {
    task_id: id,
    title: `Task ${id}`,
    repo: "alpha",
    status: "ready",
    dependencies,
  } as const;
  return (await client.call("createTask", { body: { ...body, dependencies } })).value;
}

async function edit(client: StateHubClient, id: string, body: Record<string, unknown>) {
  const { value } = await client.call("getTask", { params: { task_id: id } });
  return (await client.call("editTask", {
    params: { task_id: id },
    ifMatch: value.revision,
    body,
  })).value;
}

const ids = (changes: readonly Change[]) => changes.map((change) => change.source_id);

Deno.test("[K-18][K-19] completing a task puts its dependents into the feed as satisfied", async () => {
  await withHub(async ({ client }) => {
    await addTask(client, "one");
    await addTask(client, "two", "one");
    await addTask(client, "three", "one", "two");
    const first = await client.changes(undefined);
    assert.deepEqual(ids(first.changes), ["one", "two", "three"]);
    assert.equal(first.has_more, false);
    const two = await client.call("getTask", { params: { task_id: "two" } });
    assert.deepEqual(two.value.unsatisfied, ["one"]);

    await edit(client, "one", { status: "active" });
    await edit(client, "one", { status: "done" });
    const next = await client.changes(first.next_cursor);
    assert.deepEqual(ids(next.changes), ["one", "two", "three"]);
    const freed = next.changes[1]!.record as typeof two.value;
    assert.equal(freed.wake.reason, "dependency_satisfied");
    assert.equal(freed.wake.revision, freed.revision);
    assert.deepEqual(freed.unsatisfied, []);
    assert.deepEqual((next.changes[2]!.record as typeof two.value).unsatisfied, ["two"]);
    const actionable = await client.call("listTasks", { query: { actionable: "true" } });
    assert.deepEqual(actionable.value.items.map((task) => task.task_id), ["two"]);
    const others = await client.call("listTasks", { query: { actionable: "false" } });
    assert.deepEqual(others.value.items.map((task) => task.task_id), ["one", "three"]);
  });
});

Deno.test("[K-19] cycles, unknown dependencies and wrong moves are refused and change nothing", async () => {
  await withHub(async ({ client }) => {
    await addTask(client, "a");
    await addTask(client, "b", "a");
    await addTask(client, "c", "b");
    const before = await client.changes(undefined);
    await assert.rejects(edit(client, "a", { dependencies: ["c"] }), (error: TamqError) => {
      assert.equal(error.reason, "dependency_cycle");
      assert.match(error.message, /a -> c -> b -> a/);
      return true;
    });
    await assert.rejects(edit(client, "a", { dependencies: ["a"] }), reason("dependency_cycle"));
    await assert.rejects(edit(client, "a", { dependencies: ["zz"] }), reason("unknown_dependency"));
    await assert.rejects(addTask(client, "d", "nope"), reason("unknown_dependency"));
    await assert.rejects(addTask(client, "a"), reason("task_exists"));
    await assert.rejects(edit(client, "b", { status: "done" }), reason("dependencies_unsatisfied"));
    await assert.rejects(
      edit(client, "b", { status: "active" }),
      reason("dependencies_unsatisfied"),
    );
    await assert.rejects(edit(client, "a", { status: "blocked" }), reason("block_required"));
    await assert.rejects(
      edit(client, "a", { block: { kind: "human", note: "" } }),
      reason("block_unexpected"),
    );
    await edit(client, "a", { status: "done" });
    await assert.rejects(edit(client, "a", { status: "draft" }), reason("invalid_transition"));
    const after = await client.changes(before.next_cursor);
    assert.deepEqual(ids(after.changes), ["a", "b"]); // the one change that was allowed
  });
});

Deno.test("[K-19] a change names the revision it is meant for; a lost race is told", async () => {
  await withHub(async ({ client }) => {
    const task = await addTask(client, "t");
    const params = { task_id: "t" };
    await assert.rejects(
      client.call("editTask", { params, body: { title: "x" } }),
      reason("revision_required"),
    );
    const races = await Promise.allSettled(
      Array.from(
        { length: 20 },
        (_, i) =>
          client.call("editTask", { params, ifMatch: task.revision, body: { title: `by ${i}` } }),
      ),
    );
    assert.equal(races.filter((race) => race.status === "fulfilled").length, 1);
    for (const race of races) {
      if (race.status === "rejected") assert.equal(race.reason.reason, "revision_mismatch");
    }
    const forced = await client.call("editTask", { params, ifMatch: "*", body: { title: "any" } });
    assert.equal(forced.value.revision, 3);
    assert.equal(forced.value.wake.revision, 1, "a new title wakes nobody");
  });
});

Deno.test("[K-02][K-19] the wake revision moves for what matters to a worker alone", async () => {
  await withHub(async ({ client }) => {
    await addTask(client, "t");
    const wakes = async (body: Record<string, unknown>) => {
      const task = await edit(client, "t", body);
      return task.wake.revision === task.revision;
    };
    assert.equal(await wakes({ title: "other", labels: ["x"], description: "d" }), false);
    assert.equal(await wakes({ status: "active" }), false, "the worker takes it up");
    assert.equal(await wakes({ status: "blocked", block: { kind: "human", note: "ask" } }), true);
    assert.equal(await wakes({ status: "ready" }), true);
    assert.equal(await wakes({ needs_human: true }), true);
    assert.equal(await wakes({ agent: "codex" }), true);
    assert.equal(await wakes({ required_actions: ["destructive"] }), true);
    const same = await edit(client, "t", { agent: "codex" });
    assert.equal((await edit(client, "t", { agent: "codex" })).revision, same.revision);
  });
});

Deno.test("[K-19] the same idempotency key and content make one record; other content is a conflict", async () => {
  await withHub(async ({ client }) => {
    const body = { idempotency_key: "k1", title: "once", repo: "alpha" };
    const one = await client.call("createTask", { body });
    const two = await client.call("createTask", { body });
    assert.equal(two.value.task_id, one.value.task_id);
    await assert.rejects(
      client.call("createTask", { body: { ...body, title: "twice" } }),
      reason("idempotency_conflict"),
    );
    const { items } = (await client.call("listTasks", {})).value;
    assert.equal(items.length, 1);
  });
});

Deno.test("[K-01][K-19] a plan's status and gates reach its open tasks", async () => {
  await withHub(async ({ client }) => {
    await client.call("createWorkplan", { body: { workplan_id: "p", title: "Plan" } });
    const body = {
      task_id: "t",
      title: "T",
      repo: "alpha",
      status: "ready",
      workplan_id: "p",
    } as const;
    const task = (await client.call("createTask", { body })).value;
    assert.deepEqual(task.workplan, { workplan_id: "p", status: "draft", gated: false });
    const { next_cursor } = await client.changes(undefined);
    const params = { workplan_id: "p" };
    await client.call("editWorkplan", { params, ifMatch: 1, body: { status: "active" } });
    const noted = await client.call("addWorkplanNote", {
      params,
      body: { text: "look at this first", requests_review: true, author: "me" },
    });
    const page = await client.changes(next_cursor, { kinds: ["task"] });
    assert.deepEqual(ids(page.changes), ["t"]);
    const record = page.changes[0]!.record as typeof task;
    assert.deepEqual(record.workplan, { workplan_id: "p", status: "active", gated: true });
    const note = noted.value.notes[0]!.note_id;
    const resolve = () =>
      client.call("resolveWorkplanNote", { params: { ...params, note_id: note }, body: {} });
    const resolved = await resolve();
    assert.equal((await resolve()).value.revision, resolved.value.revision);
    const open = await client.call("listTasks", { query: { actionable: "true" } });
    assert.equal(open.value.items.length, 1);
  });
});

Deno.test("[K-01][K-19] messages go from unread over read to acknowledged and never back", async () => {
  await withHub(async ({ client }) => {
    const { value } = await client.call("createMessage", {
      body: {
        sender: "beta",
        target_repo: "alpha",
        subject: "s",
        body: "two\nlines",
        requests_action: true,
      },
    });
    assert.equal(value.state, "unread");
    const params = { message_id: value.message_id };
    const read = await client.call("readMessage", { params, body: {} });
    assert.equal(read.value.state, "read");
    assert.equal(read.value.wake.revision, 1);
    const acked = await client.call("ackMessage", { params, body: {} });
    assert.equal(acked.value.state, "acknowledged");
    const again = await client.call("readMessage", { params, body: {} });
    assert.deepEqual(again.value, acked.value);
    const unread = await client.call("listMessages", { query: { state: "unread" } });
    assert.deepEqual(unread.value.items, []);
  });
});

Deno.test("[K-11][K-14][K-15] checkpoints and receipts are kept, newest first; a receipt once a key", async () => {
  await withHub(async ({ client }) => {
    await addTask(client, "t");
    for (const summary of ["first", "second"]) {
      await client.call("createCheckpoint", {
        body: {
          lease_id: "lease1",
          task_id: "t",
          repo: "alpha",
          summary,
          files_changed: ["a.ts"],
          next_action: "go on",
          blocked_reason: null,
          recorded_at: "2030-01-01T00:00:00.000Z",
        },
      });
    }
    const points = await client.call("listCheckpoints", { query: { task_id: "t", limit: 1 } });
    assert.equal(points.value.items[0]!.summary, "second");
    const rest = await client.call("listCheckpoints", {
      query: { task_id: "t", cursor: points.value.next_cursor! },
    });
    assert.deepEqual(rest.value.items.map((point) => point.summary), ["first"]);

    const receipt: Receipt = {
      receipt_id: "r1",
      idempotency_key: "rk1",
      kind: "wake",
      status: "offered",
      lease_id: "lease1",
      recorded_at: "2030-01-01T00:00:00.000Z",
    };
    await client.call("publishReceipt", { body: receipt });
    await client.call("publishReceipt", { body: receipt });
    await assert.rejects(
      client.call("publishReceipt", { body: { ...receipt, status: "stopped" } }),
      reason("idempotency_conflict"),
    );
    await assert.rejects(
      client.call("publishReceipt", { body: { ...receipt, prompt: "secret" } as never }),
      reason("request_invalid"),
    );
    const receipts = await client.call("listReceipts", { query: { lease_id: "lease1" } });
    assert.deepEqual(receipts.value.items, [receipt]);
  });
});

Deno.test("[K-01] pages of lists and of the feed lose and repeat nothing; a foreign cursor is told", async () => {
  await withHub(async ({ client }) => {
    for (let i = 0; i < 25; i++) await addTask(client, `t${i}`);
    const listed: string[] = [];
    let cursor: string | undefined;
    do {
      const page = (await client.call("listTasks", { query: { limit: 7, cursor } })).value;
      listed.push(...page.items.map((task) => task.task_id));
      cursor = page.next_cursor ?? undefined;
    } while (cursor !== undefined);
    assert.deepEqual(listed, Array.from({ length: 25 }, (_, i) => `t${i}`));
    const fed: string[] = [];
    let place: string | undefined;
    for (let more = true; more;) {
      const page = await client.changes(place, { limit: 7 });
      fed.push(...ids(page.changes));
      place = page.next_cursor;
      more = page.has_more;
    }
    assert.deepEqual(fed, listed);
    assert.deepEqual((await client.changes(place)).changes, []);
    await assert.rejects(client.changes("rubbish"), reason("cursor_invalid"));
    await withHub(async ({ client: other }) => {
      await assert.rejects(other.changes(place), reason("cursor_expired"));
    });
  });
});
