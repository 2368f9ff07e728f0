import assert from "node:assert/strict";
import { reasonWords } from "../../../lib/cli/attempt_words.ts";
import { attemptSteps, STEP_REASONS, waitingSteps } from "../../../lib/cli/gate_steps.ts";

const attempt = (outcome: string, reason: string | null) => ({
  attempt: 1,
  endpoint_id: null,
  started_at: "2026-12-01T00:00:00Z",
  ended_at: null,
  outcome,
  reason,
});

Deno.test("[B-08] show tells each step of the gate: passed, stopped with reason and bound, not reached", () => {
  const stopped = attemptSteps(attempt("failed", "dialog_opened"))!;
  assert.match(
    stopped,
    /^✓ window attached {2}✓ right program at the terminal {2}✓ no dialog open/,
  );
  assert.match(
    stopped,
    /✓ text seen in the line {2}✗ still no dialog, same program: a dialog opened/,
  );
  assert.match(stopped, /Enter was not pressed \(500 ms\) {2}· submission seen$/);
  const all = attemptSteps(attempt("written", "confirmed: working"))!;
  assert.equal(all.match(/✓/g)!.length, 9);
  assert.doesNotMatch(all, /[✗·]/);
  const unrecognised = attemptSteps(attempt("failed", "agent_unrecognised: no_prompt_row"))!;
  assert.match(unrecognised, /✗ ready, or able to queue: the profile does not recognise/);
  // What a shell or a reader of lines does has no such steps.
  assert.equal(attemptSteps(attempt("displayed", null)), undefined);
  assert.equal(attemptSteps(attempt("written", "flattened")), undefined);

  assert.match(waitingSteps("gate: operator_typing")!, /✗ operator's line empty and quiet.*waits/);
  assert.match(waitingSteps("not_attached")!, /^✗ window attached/);
  for (const other of ["paused", "backoff", "queued", null]) {
    assert.equal(waitingSteps(other), undefined);
  }
});

Deno.test("[B-08] every reason that stops at a step is one that a broker or the service gives, with words", async () => {
  const root = new URL("../../../lib/", import.meta.url);
  const text = (await Promise.all(
    [
      "pty/agent.ts",
      "pty/agent_injector.ts",
      "pty/gate.ts",
      "pty/link.ts",
      "pty/window.ts",
      "queue/waiting.ts",
      "queue/moves.ts",
      "model/message.ts",
      "queue/settle.ts",
      "queue/deadlines.ts",
    ].map((file) => Deno.readTextFile(new URL(file, root))),
  )).join();
  for (const reason of STEP_REASONS) {
    assert.ok(text.includes(reason), `${reason} is given nowhere`);
    if (reason === "agent_unrecognised") continue; // its words say what is missing
    assert.notEqual(reasonWords(reason), reason, `${reason} has no words`);
  }
});
