/** What an agent in a window tries in order to open its own gate, and what the hub says to it. */
import assert from "node:assert/strict";
import { PROTOCOL } from "../../lib/protocol/handshake.ts";
import { CoordWorld } from "../helpers/coord_world.ts";

Deno.test("[K-04][K-19][T-27] no command and no request in a worker's window opens its gate; its own work it may report; the operator opens the gate, and it is woken", async () => {
  await using coord = await CoordWorld.create(["alpha", "beta"]);
  await coord.start();
  await coord.worker("alpha");
  await coord.hub("plan", "add", "Held", "--id", "held", "--repo", "alpha");
  await coord.task("gated", "alpha", "--needs-human", "--action", "repo_edit");
  await coord.task("planned", "alpha", "--plan", "held");
  await coord.task("others", "beta");
  await coord.hub("task", "note", "gated", "show me", "--review");
  const [{ notes }] = await coord.rows("hub", "task", "show", "gated") as [
    { notes: { note_id: string }[] },
  ];
  const note = notes[0]!.note_id;

  const outcome = async (typed: string) => {
    const before = (await coord.steps("alpha")).length;
    await coord.world.type("alpha", typed);
    return await coord.until(
      `"${typed}"`,
      async () => (await coord.steps("alpha")).slice(before).find(({ args }) => args !== undefined),
    );
  };
  const run = async (words: string) => {
    const { code, stderr } = await outcome(`run hub ${words} --json`);
    return code === 0 ? "ok" : `${code} ${JSON.parse(stderr!).reason}`;
  };
  for (
    const words of [
      "task edit gated --no-needs-human",
      "task edit gated --action tmux_wake",
      "task edit gated --repo beta",
      `task resolve gated ${note}`,
      "plan start held",
      "task edit planned --plan other",
    ]
  ) assert.equal(await run(words), "5 worker_refused", words);
  assert.equal(await run("task done others"), "5 other_repository");
  assert.equal(await run("task edit others --needs-human"), "5 other_repository");
  assert.equal(await run("message add hi --to beta --from operator"), "5 sender_refused");

  const receipt = JSON.stringify({
    receipt_id: "r1",
    idempotency_key: "r1",
    kind: "approval",
    status: "recorded",
    recorded_at: "2030-01-01T00:00:00.000Z",
  });
  for (
    const request of [
      `PATCH /v1/tasks/gated {"needs_human":false}`,
      `PATCH /v1/tasks/gated {"required_actions":[]}`,
      `POST /v1/tasks/gated/notes/${note}/resolve {}`,
      `PATCH /v1/workplans/held {"status":"active"}`,
      `POST /v1/receipts ${receipt}`,
    ]
  ) {
    const { code, stdout } = await outcome(`http ${request}`);
    assert.equal(`${code} ${JSON.parse(stdout!).error?.reason}`, "403 worker_refused", request);
  }

  const attach = {
    op: "attach",
    protocol: PROTOCOL,
    capabilities: [],
    service_id: "s",
    endpoint_id: "tmux-amq-1",
    tmux_session: "s",
    windows: [{ repo: "alpha", path: coord.world.repo("alpha"), command: ["cat"] }],
  };
  for (
    const request of [
      attach,
      { op: "challenge", protocol: PROTOCOL, trigger_id: "x", action: "repo_edit" },
    ]
  ) {
    const { stdout } = await outcome(`engine ${JSON.stringify(request)}`);
    assert.equal(JSON.parse(stdout!).error?.reason, "worker_refused", stdout!);
  }

  // A gate of its own making is the operator's to open as well.
  await coord.task("asked", "alpha");
  await coord.until("asked to be over", async () => {
    const [row] = await coord.rows("hub", "task", "show", "asked");
    return row!.status === "done";
  });
  await coord.hub("task", "add", "Ask", "--repo", "alpha", "--id", "unsure");
  assert.equal(await run("task block unsure --kind human --note which?"), "ok");
  assert.equal(await run("task ready unsure"), "5 worker_refused");
  assert.equal(await run("task add More --repo beta --id more"), "ok");
  assert.equal(await run("message add done --to beta --ask"), "ok");

  const wakes = (await coord.wakes("alpha")).length;
  assert.equal(wakes, 1, "for the one task without a gate");
  await coord.hub("task", "edit", "gated", "--no-needs-human");
  await coord.hub("task", "resolve", "gated", note);
  await coord.untilDone("gated");
});
