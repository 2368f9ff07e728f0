/** Whatever the input: a gated trigger wakes nobody without a person's recorded yes. */
import assert from "node:assert/strict";
import fc from "fast-check";
import { evaluate, type Facts, type Subject } from "../../lib/coord/gates.ts";
import { BLOCKED_REASONS } from "../../lib/model/checkpoint.ts";
import {
  DEFAULT_ALLOW,
  DEFAULT_REQUIRE_HUMAN,
  type PolicyProfile,
} from "../../lib/model/policy.ts";
import { TRIGGER_REASONS, TRIGGER_SOURCES, type WorkerTrigger } from "../../lib/model/trigger.ts";

const RUNS = { numRuns: 20_000 };
const NOW = 1_000_000;

const FIXED_GATES = [
  "identity",
  "authentication",
  "prompt_secret",
  "human_review",
  "policy_decision",
];
const action = fc.constantFrom(
  ...DEFAULT_ALLOW,
  ...DEFAULT_REQUIRE_HUMAN,
  "custom",
  ...FIXED_GATES,
);

/** The first one nine times of ten: nearly every case would be gated otherwise and show nothing. */
const mostly = <T>(usual: T, ...others: T[]): fc.Arbitrary<T> =>
  fc.oneof({ weight: 9, arbitrary: fc.constant(usual) }, {
    weight: 1,
    arbitrary: fc.constantFrom(...others),
  });

const trigger: fc.Arbitrary<WorkerTrigger> = fc.record({
  id: fc.constantFrom("trigger1", "trigger2"),
  source: fc.constantFrom(...TRIGGER_SOURCES),
  source_id: fc.constant("s"),
  source_revision: mostly("1", "2"),
  target_repo: mostly("alpha", "beta"),
  reason: fc.constantFrom(...TRIGGER_REASONS),
  observed_at: fc.constant("2030-01-01T00:00:00.000Z"),
});

const rarely = mostly(false, true);

const subject: fc.Arbitrary<Subject> = fc.record({
  repo: fc.constant("alpha"),
  revision: fc.constant("1"),
  phase: mostly<Subject["phase"]>("open", "draft", "finished"),
  block: fc.option(fc.constantFrom(...BLOCKED_REASONS), { freq: 3 }),
  needsHuman: rarely,
  reviewRequested: rarely,
  plan: fc.option(fc.record({ open: mostly(true, false), gated: rarely })),
  unsatisfied: mostly(0, 1),
  asksForAction: mostly(true, false),
  requiredActions: fc.array(action, { maxLength: 2 }),
});

const facts: fc.Arbitrary<Facts> = fc.record({
  now: fc.constant(NOW),
  subject: fc.option(subject, { nil: undefined, freq: 20 }),
  target: fc.record({
    registration: mostly<Facts["target"]["registration"]>(
      "registered",
      "unregistered",
      "ambiguous",
    ),
    session: mostly<Facts["target"]["session"]>(
      "authenticated",
      "unauthenticated",
      "absent",
      "several",
    ),
    identity: mostly<Facts["target"]["identity"]>("matches", "mismatch", "unknown"),
  }),
  ownership: mostly<Facts["ownership"]>("clear", "ambiguous"),
  promptSecret: mostly<boolean | undefined>(false, true, undefined),
  gatesBefore: fc.oneof({ weight: 4, arbitrary: fc.constant([]) }, {
    weight: 1,
    arbitrary: fc.array(action, { maxLength: 2 }),
  }),
  approvals: fc.array(
    fc.record({
      approvalId: fc.constant("a"),
      triggerId: fc.constantFrom("trigger1", "trigger2"),
      action,
      recordedAt: mostly(NOW - 1, NOW, NOW + 1),
      expiresAt: mostly(NOW + 1000, NOW - 1, NOW, NOW + 1),
    }),
    { maxLength: 12 },
  ),
  lease: mostly<Facts["lease"]>("none", "held", "completed"),
  attempts: mostly(0, 1, 2, 9),
  maxAttempts: mostly(4, 0, 9),
  nextAttemptAt: mostly<number | undefined>(undefined, NOW - 1, NOW + 1),
});

const policy: fc.Arbitrary<PolicyProfile> = fc.record({
  name: fc.constant("p"),
  version: fc.constant("v"),
  allow: fc.subarray([...DEFAULT_ALLOW, ...DEFAULT_REQUIRE_HUMAN, "custom", ...FIXED_GATES], {
    minLength: 10,
  })
    .map((allow) => [...allow, "tmux_wake"]),
  requireHuman: fc.subarray([...DEFAULT_REQUIRE_HUMAN, "custom"]),
  safetyGatedMaxAttempts: fc.integer({ min: 0, max: 9 }),
  allowOrwell: fc.boolean(),
});

/** The contract's own words, written down a second time and differently. */
function gatesThatApply(f: Facts, s: Subject, p: PolicyProfile): Set<string> {
  const gates = new Set(f.gatesBefore);
  const { registration, session, identity } = f.target;
  if (registration !== "registered") gates.add("identity");
  if (identity === "mismatch") gates.add("identity");
  if (session === "authenticated" && identity !== "matches") gates.add("identity");
  if (session === "unauthenticated") gates.add("authentication");
  if (f.promptSecret) gates.add("prompt_secret");
  if (s.needsHuman || s.reviewRequested || s.plan?.gated || s.block === "human") {
    gates.add("human_review");
  }
  if (s.block === "secret") gates.add("secrets");
  if (s.block === "destructive") gates.add("destructive");
  if (s.block === "policy") gates.add("policy_decision");
  if (f.ownership === "ambiguous") gates.add("ambiguous_ownership");
  for (const a of s.requiredActions) {
    if (!p.allow.includes(a) || p.requireHuman.includes(a)) gates.add(a);
  }
  return gates;
}

function approved(gate: string, t: WorkerTrigger, f: Facts): boolean {
  if (["identity", "authentication", "prompt_secret"].includes(gate)) return false;
  return f.approvals.some((a) =>
    a.action === gate && a.triggerId === t.id && a.recordedAt <= f.now && a.expiresAt > f.now
  );
}

Deno.test("[K-03][K-04][K-13] no input wakes a gated trigger without a recorded approval of each gate", () => {
  let woken = 0;
  let byApproval = 0;
  fc.assert(
    fc.property(trigger, facts, policy, (t, f, p) => {
      const decision = evaluate(t, f, p);
      assert.ok(["actionable", "gated", "not_yet"].includes(decision.kind));
      if (decision.kind !== "actionable") return;
      woken++;
      assert.ok(f.subject !== undefined);
      const gates = gatesThatApply(f, f.subject, p);
      if (gates.size > 0) byApproval++;
      for (const gate of gates) {
        assert.ok(approved(gate, t, f), `woken through the gate ${gate}`);
      }
      assert.equal(f.subject.phase, "open");
      assert.equal(f.lease, "none");
      assert.ok(f.subject.unsatisfied === 0 || t.source === "message" && f.subject.asksForAction);
      assert.deepEqual(
        [f.target.registration, f.target.session, f.target.identity],
        ["registered", "authenticated", "matches"],
      );
    }),
    RUNS,
  );
  assert.ok(woken > 500 && byApproval > 50, `too few cases wake: ${woken}, ${byApproval} approved`);
});

Deno.test("[K-04][K-05] no retry setting and no number of attempts changes a gated decision", () => {
  let gated = 0;
  fc.assert(
    fc.property(
      trigger,
      facts,
      policy,
      fc.record({
        attempts: fc.integer({ min: 0, max: 9 }),
        maxAttempts: fc.integer({ min: 0, max: 9 }),
        nextAttemptAt: fc.constantFrom(undefined, 0, NOW * 2),
      }),
      fc.integer({ min: 0, max: 9 }),
      (t, f, p, retry, safetyGatedMaxAttempts) => {
        const before = evaluate(t, f, p);
        if (before.kind !== "gated") return;
        gated++;
        const after = evaluate(t, { ...f, ...retry }, { ...p, safetyGatedMaxAttempts });
        assert.deepEqual(after, before);
      },
    ),
    RUNS,
  );
  assert.ok(gated > 100);
});

Deno.test("[K-04] once gated, a trigger stays gated whatever later becomes of the facts", () => {
  fc.assert(
    fc.property(trigger, facts, facts, policy, policy, (t, f, later, p, q) => {
      const first = evaluate(t, { ...f, approvals: [] }, p);
      if (first.kind !== "gated") return;
      const remembered = first.gates.map((gate) => gate.gate);
      const second = evaluate(t, { ...later, gatesBefore: remembered, approvals: [] }, q);
      assert.notEqual(second.kind, "actionable");
    }),
    RUNS,
  );
});

Deno.test("[K-13] no approval of whatever kind opens identity, authentication or a secret in the prompt", () => {
  const shut: fc.Arbitrary<Partial<Facts>> = fc.constantFrom<Partial<Facts>>(
    { target: { registration: "unregistered", session: "authenticated", identity: "matches" } },
    { target: { registration: "registered", session: "unauthenticated", identity: "matches" } },
    { target: { registration: "registered", session: "authenticated", identity: "mismatch" } },
    { target: { registration: "registered", session: "authenticated", identity: "unknown" } },
    { promptSecret: true },
    { gatesBefore: ["identity"] },
    { gatesBefore: ["authentication"] },
  );
  fc.assert(
    fc.property(trigger, facts, policy, shut, (t, f, p, closed) => {
      const everything = [...DEFAULT_ALLOW, ...DEFAULT_REQUIRE_HUMAN, "custom", ...FIXED_GATES];
      const approvals = everything.map((name) => ({
        approvalId: name,
        triggerId: t.id,
        action: name,
        recordedAt: 0,
        expiresAt: Infinity,
      }));
      assert.notEqual(evaluate(t, { ...f, ...closed, approvals }, p).kind, "actionable");
    }),
    RUNS,
  );
});
