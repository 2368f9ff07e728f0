import assert from "node:assert/strict";
import {
  type Decision,
  evaluate,
  type Facts,
  mayLookAgain,
  NEVER_APPROVABLE,
  type Subject,
} from "../../../lib/coord/gates.ts";
import { DEFAULT_PROFILE, makeProfile } from "../../../lib/model/policy.ts";
import type { WorkerTrigger } from "../../../lib/model/trigger.ts";

const NOW = Date.UTC(2030, 0, 1);

const trigger: WorkerTrigger = {
  id: "trigger1",
  source: "task",
  source_id: "t",
  source_revision: "3",
  target_repo: "alpha",
  reason: "task_actionable",
  observed_at: "2030-01-01T00:00:00.000Z",
};

const subject: Subject = {
  repo: "alpha",
  revision: "3",
  phase: "open",
  block: null,
  needsHuman: false,
  reviewRequested: false,
  plan: { open: true, gated: false },
  unsatisfied: 0,
  asksForAction: true,
  requiredActions: ["repo_edit", "local_checks"],
};

const facts: Facts = {
  now: NOW,
  subject,
  target: { registration: "registered", session: "authenticated", identity: "matches" },
  ownership: "clear",
  promptSecret: false,
  gatesBefore: [],
  approvals: [],
  lease: "none",
  attempts: 0,
  maxAttempts: 4,
  nextAttemptAt: undefined,
};

const on = (changes: Partial<Subject>): Facts => ({
  ...facts,
  subject: { ...subject, ...changes },
});
const approve = (action: string, extra = {}) => ({
  approvalId: `approval-${action}`,
  triggerId: "trigger1",
  action,
  recordedAt: NOW - 1000,
  expiresAt: NOW + 1000,
  ...extra,
});
const told = (decision: Decision) =>
  decision.kind === "actionable" ? "actionable" : `${decision.kind} ${decision.reason}`;

Deno.test("[K-03] an open task with its dependencies done and no gate is actionable", () => {
  assert.deepEqual(evaluate(trigger, facts, DEFAULT_PROFILE), {
    kind: "actionable",
    approvals: [],
  });
});

/** Every gate the contract names, with the gate that an approval would have to name. */
const GATED: readonly (readonly [what: string, facts: Facts, reason: string, gate: string])[] = [
  ["needs_human", on({ needsHuman: true }), "needs_human", "human_review"],
  ["an intervention note", on({ reviewRequested: true }), "review_requested", "human_review"],
  ["a gated plan", on({ plan: { open: true, gated: true } }), "plan_gated", "human_review"],
  ["blocked: human", on({ block: "human" }), "blocked_human", "human_review"],
  ["blocked: secret", on({ block: "secret" }), "blocked_secret", "secrets"],
  ["blocked: destructive", on({ block: "destructive" }), "blocked_destructive", "destructive"],
  ["blocked: policy", on({ block: "policy" }), "blocked_policy", "policy_decision"],
  [
    "unclear owner",
    { ...facts, ownership: "ambiguous" },
    "ownership_ambiguous",
    "ambiguous_ownership",
  ],
  ["a secret in the prompt", { ...facts, promptSecret: true }, "secret_in_prompt", "prompt_secret"],
  [
    "an unregistered repository",
    { ...facts, target: { ...facts.target, registration: "unregistered" } },
    "repository_unregistered",
    "identity",
  ],
  [
    "a name registered twice",
    { ...facts, target: { ...facts.target, registration: "ambiguous" } },
    "repository_ambiguous",
    "identity",
  ],
  [
    "a session nobody vouches for",
    { ...facts, target: { ...facts.target, session: "unauthenticated" } },
    "session_unauthenticated",
    "authentication",
  ],
  [
    "another repository's session",
    { ...facts, target: { ...facts.target, identity: "mismatch" } },
    "identity_mismatch",
    "identity",
  ],
  [
    "a session of unknown identity",
    { ...facts, target: { ...facts.target, identity: "unknown" } },
    "identity_unknown",
    "identity",
  ],
  [
    "an unknown class of action",
    on({ requiredActions: ["teleport"] }),
    "action_not_allowed",
    "teleport",
  ],
  ["a gate of before", { ...facts, gatesBefore: ["legal"] }, "gated_before", "legal"],
  ...DEFAULT_PROFILE.requireHuman.map((action) =>
    [
      action,
      on({ requiredActions: ["repo_edit", action] }),
      "action_requires_human",
      action,
    ] as const
  ),
];

for (const [what, given, reason, gate] of GATED) {
  Deno.test(`[K-03][K-04][K-13] gated: ${what}`, () => {
    assert.equal(told(evaluate(trigger, given, DEFAULT_PROFILE)), `gated ${reason}`);
    const approved = { ...given, approvals: [approve(gate)] };
    const never = (NEVER_APPROVABLE as readonly string[]).includes(gate);
    assert.equal(
      told(evaluate(trigger, approved, DEFAULT_PROFILE)),
      never ? `gated ${reason}` : "actionable",
    );
    // An approval of something else, of another trigger, not yet made or over, opens nothing.
    const wrong = [
      approve("another"),
      approve(gate, { triggerId: "trigger2" }),
      approve(gate, { recordedAt: NOW + 1 }),
      approve(gate, { expiresAt: NOW }),
    ];
    assert.equal(
      told(evaluate(trigger, { ...given, approvals: wrong }, DEFAULT_PROFILE)),
      `gated ${reason}`,
    );
  });
}

Deno.test("[K-04] every gate needs its own approval, and the decision names those that were used", () => {
  const given = on({ needsHuman: true, requiredActions: ["legal", "financial"] });
  const part = evaluate(
    trigger,
    { ...given, approvals: [approve("human_review"), approve("legal")] },
    DEFAULT_PROFILE,
  );
  assert.equal(part.kind === "gated" && part.gates.map((gate) => gate.gate).join(), "financial");
  const approvals = [approve("financial"), approve("human_review"), approve("legal")];
  assert.deepEqual(evaluate(trigger, { ...given, approvals }, DEFAULT_PROFILE), {
    kind: "actionable",
    approvals: ["approval-human_review", "approval-legal", "approval-financial"],
  });
});

Deno.test("[K-04] a gate that has become calm by itself stays shut for that trigger", () => {
  const before = evaluate(trigger, on({ needsHuman: true }), DEFAULT_PROFILE);
  assert.ok(before.kind === "gated");
  const later = { ...facts, gatesBefore: before.gates.map((gate) => gate.gate) };
  assert.equal(told(evaluate(trigger, later, DEFAULT_PROFILE)), "gated gated_before");
  // A change of the task makes a new trigger, with a revision of its own.
  const next = { ...trigger, id: "trigger2", source_revision: "4" };
  const moved = { ...facts, subject: { ...subject, revision: "4" } };
  assert.equal(told(evaluate(next, moved, DEFAULT_PROFILE)), "actionable");
});

const WAITING: readonly (readonly [facts: Facts, reason: string])[] = [
  [{ ...facts, subject: undefined }, "source_gone"],
  [on({ revision: "4" }), "superseded"],
  [on({ repo: "beta" }), "superseded"],
  [on({ phase: "finished" }), "finished"],
  [on({ phase: "draft", needsHuman: true }), "not_ready"],
  [on({ plan: { open: false, gated: false } }), "plan_not_open"],
  [{ ...facts, lease: "completed" }, "lease_completed"],
  [on({ unsatisfied: 2 }), "dependencies_unsatisfied"],
  [on({ block: "dependency" }), "blocked_dependency"],
  [on({ block: "unavailable" }), "blocked_unavailable"],
  [{ ...facts, lease: "held" }, "lease_held"],
  [{ ...facts, attempts: 4 }, "attempts_exhausted"],
  [{ ...facts, attempts: 1, nextAttemptAt: NOW + 1 }, "backing_off"],
  [
    { ...facts, target: { ...facts.target, session: "absent", identity: "unknown" } },
    "session_absent",
  ],
  [
    { ...facts, target: { ...facts.target, session: "several", identity: "unknown" } },
    "endpoint_ambiguous",
  ],
  [{ ...facts, promptSecret: undefined }, "prompt_unchecked"],
];
for (const [given, reason] of WAITING) {
  Deno.test(`[K-03][K-05] not yet: ${reason}`, () => {
    assert.equal(told(evaluate(trigger, given, DEFAULT_PROFILE)), `not_yet ${reason}`);
  });
}

Deno.test("[K-03] a message that asks for action does not wait for dependencies; another asks nothing", () => {
  const message = { ...trigger, source: "message", reason: "inbox_message" } as const;
  assert.equal(told(evaluate(message, on({ unsatisfied: 3 }), DEFAULT_PROFILE)), "actionable");
  assert.equal(
    told(evaluate(message, on({ asksForAction: false }), DEFAULT_PROFILE)),
    "not_yet no_action_requested",
  );
});

Deno.test("[K-05] gated triggers are looked at again only under an explicit policy, and stay gated", () => {
  assert.equal(mayLookAgain(DEFAULT_PROFILE, 0), false);
  const eager = makeProfile("eager", {
    allow: DEFAULT_PROFILE.allow,
    require_human: DEFAULT_PROFILE.requireHuman,
    safety_gated_max_attempts: 9,
  });
  assert.equal(mayLookAgain(eager, 8), true);
  assert.equal(mayLookAgain(eager, 9), false);
  for (let i = 0; i < 9; i++) {
    assert.equal(told(evaluate(trigger, on({ needsHuman: true }), eager)), "gated needs_human");
  }
});

Deno.test("[K-05][K-13] a profile without transient_retry retries nothing; one without tmux_wake wakes nobody", () => {
  const without = (action: string) =>
    makeProfile("less", {
      allow: DEFAULT_PROFILE.allow.filter((other) => other !== action),
      require_human: DEFAULT_PROFILE.requireHuman,
    });
  const again = { ...facts, attempts: 1 };
  assert.equal(
    told(evaluate(trigger, again, without("transient_retry"))),
    "not_yet retry_not_allowed",
  );
  assert.equal(told(evaluate(trigger, facts, without("tmux_wake"))), "gated action_not_allowed");
});
