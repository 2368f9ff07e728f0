/** What `tamq hub task|plan|message …` do, against a real hub. */
import assert from "node:assert/strict";
import type { StateHubClient } from "../../lib/coord/statehub_client.ts";
import * as verbs from "../../lib/coord/hub_verbs.ts";
import { withHub } from "../helpers/hub.ts";

const words = (lines: readonly string[]) => lines.map((line) => line.replace(/ {2,}/g, " | "));

Deno.test("[K-18][K-19] tasks by verbs: add, ready, list, block, done, and who waits for whom", async () => {
  await withHub(async ({ client }) => {
    await verbs.taskAdd(client, { task_id: "a", title: "First", repo: "alpha", status: "ready" });
    await verbs.taskAdd(client, {
      task_id: "b",
      title: "Second",
      repo: "beta",
      dependencies: ["a"],
    });
    assert.deepEqual((await verbs.taskReady(client, "b")).lines, ["b is ready"]);
    assert.deepEqual(words((await verbs.taskList(client)).lines), [
      "TASK | STATUS | REPOSITORY | P | WAITS | TITLE",
      "a | ready | alpha | 5 | First",
      "b | ready | beta | 5 | waits for a | Second",
    ]);
    const blocked = await verbs.taskBlock(client, "a", { kind: "human", note: "which way?" });
    assert.equal(blocked.records[0]!.status, "blocked");
    assert.match(
      (await verbs.taskShow(client, "a")).lines.join("\n"),
      /blocked: human[\s\S]*│ which way\?/,
    );
    await verbs.taskReady(client, "a");
    assert.deepEqual((await verbs.taskDone(client, "a")).lines, ["a is done"]);
    const open = await verbs.taskList(client, { actionable: "true" });
    assert.deepEqual(open.records.map((task) => task.task_id), ["b"]);
    await assert.rejects(verbs.taskShow(client, "zz"), { reason: "unknown_task" });
    const noted = await verbs.taskNote(client, "b", {
      text: "wait",
      requests_review: true,
      author: "me",
    });
    assert.match(
      words((await verbs.taskList(client, { repo: "beta" })).lines)[1]!,
      /review requested/,
    );
    await verbs.taskResolve(client, "b", noted.records[0]!.notes[0]!.note_id);
    assert.equal((await verbs.taskList(client, { actionable: "true" })).records.length, 1);
  });
});

Deno.test("[K-19] plans and messages by verbs", async () => {
  await withHub(async ({ client }) => {
    await verbs.planAdd(client, { workplan_id: "p", title: "Plan", repo: "alpha" });
    await verbs.taskAdd(client, {
      task_id: "t",
      title: "T",
      repo: "alpha",
      status: "ready",
      workplan_id: "p",
    });
    assert.match((await verbs.planShow(client, "p")).lines.at(-1)!, /plan draft/);
    await verbs.planEdit(client, "p", { status: "active" });
    assert.equal((await verbs.planList(client, { status: "active" })).records.length, 1);
    const left = await verbs.messageAdd(client, {
      sender: "local",
      target_repo: "my repo",
      subject: "s",
      body: "one\ntwo",
      requests_action: true,
    });
    const id = left.records[0]!.message_id;
    assert.deepEqual(left.lines, [`left ${id} for my repo`]);
    assert.equal((await verbs.messageShow(client, id, false)).records[0]!.state, "unread");
    const shown = await verbs.messageShow(client, id, true);
    assert.equal(shown.records[0]!.state, "read");
    assert.match(shown.lines.join("\n"), / {2}│ one\n {2}│ two$/);
    assert.deepEqual((await verbs.messageAck(client, id)).lines, [`${id} is acknowledged`]);
    assert.equal((await verbs.messageList(client, { state: "unread" })).lines[0], "no messages");
  });
});

Deno.test("[K-19] a person's edit that loses a race is made on the newer revision", async () => {
  await withHub(async ({ client }) => {
    await verbs.taskAdd(client, { task_id: "t", title: "T", repo: "alpha" });
    const edits = Array.from(
      { length: 4 },
      (_, i) => verbs.taskEdit(client, "t", { labels: [`l${i}`] }),
    );
    await Promise.all([...edits, verbs.taskReady(client, "t")]);
    const { records: [task] } = await verbs.taskShow(client, "t");
    assert.equal(task!.status, "ready");
    assert.equal(task!.revision, 6);
  });
});

Deno.test("[C-01] what another program wrote into the hub cannot drive the terminal", async () => {
  await withHub(async ({ client }) => {
    const title = "a\u202eb\u200bc"; // reversal and an invisible character
    await verbs.taskAdd(client, { task_id: "t", title, repo: "alpha", description: "x\u2028y" });
    const hostile = client as StateHubClient;
    for (const { lines } of [await verbs.taskList(hostile), await verbs.taskShow(hostile, "t")]) {
      assert.doesNotMatch(lines.join("\n"), /[\u202e\u200b\u2028]/);
      assert.match(lines.join("\n"), /a\\u\{202e\}b/);
    }
  });
});
