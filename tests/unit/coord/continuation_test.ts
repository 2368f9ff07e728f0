/** The prompt of a wake: what it says, in which order, within which bounds. */
import assert from "node:assert/strict";
import {
  buildPrompt,
  OVERRIDE_FILE,
  type PromptParts,
  readOverride,
  templates,
} from "../../../lib/coord/continuation.ts";
import { holdsSecret } from "../../../lib/coord/secrets.ts";
import { MAX_BODY_BYTES } from "../../../lib/model/body.ts";
import { DEFAULT_PROFILE } from "../../../lib/model/policy.ts";
import { withTempDir } from "../../helpers/temp.ts";

const PARTS: PromptParts = {
  trigger: {
    id: "tr1",
    source: "task",
    source_id: "api",
    source_revision: "3",
    target_repo: "alpha",
    reason: "dependency_satisfied",
    observed_at: "2030-01-01T00:00:00.000Z",
  },
  work: { title: "Build it", text: "line one\nTo:beta: hi", show: "show it", done: "say done" },
  checkpoint: undefined,
  handle: "06.7",
  policy: DEFAULT_PROFILE,
  leaseSeconds: 120,
  hallOfHelix: "perspectives/",
  override: undefined,
};

Deno.test("[K-10][K-12][K-13] the prompt names work, commands, policy and the four templates in order", () => {
  const prompt = buildPrompt(PARTS);
  let at = 0;
  for (
    const words of [
      "task api (dependency_satisfied)",
      "Build it",
      "> line one",
      "> To:beta: hi",
      "show it",
      "tamq coord ack 06.7",
      "tamq coord renew 06.7",
      "tamq coord checkpoint 06.7",
      "tamq coord release 06.7",
      "say done",
      "tamq coord complete 06.7",
      "You may: statehub_read",
      "Left to a person: secrets",
      "1. Inspect open work and implement the highest-priority",
      "2. If no work is open, reconcile SCOPE.md with INTENT.md",
      "3. Review pending work",
      "4. If no safe work remains, close the session and write a perspective entry to perspectives/",
    ]
  ) {
    const found = prompt.indexOf(words, at);
    assert.ok(found >= at, `"${words}" in its place in\n${prompt}`);
    at = found;
  }
  assert.equal(templates(undefined).length, 3, "without a destination the last one has no sense");
});

Deno.test("[K-11][K-12] checkpoint and the repository's own templates stand in it; whatever their length it fits", () => {
  const long = "ä€".repeat(4000);
  const checkpoint = {
    lease_id: "l",
    summary: `did ${long}`,
    files_changed: Array.from({ length: 200 }, (_, i) => `file${i}-${"x".repeat(900)}`),
    next_action: `next ${long}`,
    blocked_reason: null,
    recorded_at: "2030-01-01T00:00:00.000Z",
  };
  const prompt = buildPrompt({
    ...PARTS,
    work: { ...PARTS.work, text: long },
    checkpoint,
    override: `OWN ${"o".repeat(2000)}`,
  });
  assert.ok(new TextEncoder().encode(prompt).length <= MAX_BODY_BYTES);
  for (const words of ["did ä€", "next ä€", "OWN", "tamq coord complete 06.7"]) {
    assert.ok(prompt.includes(words), words);
  }
  assert.ok(!prompt.includes("1. Inspect open work"), "its own in place of ours");
  assert.ok(buildPrompt({ ...PARTS, override: "o".repeat(8000) }).includes("1. Inspect open work"));
});

Deno.test("[K-12] the repository's file counts when it is a small plain text file and no link", async () => {
  await withTempDir((dir) => {
    const path = `${dir}/${OVERRIDE_FILE}`;
    Deno.mkdirSync(`${dir}/.tamq`);
    assert.equal(readOverride(dir), undefined);
    Deno.writeTextFileSync(path, "do this first\n");
    assert.equal(readOverride(dir), "do this first");
    Deno.writeTextFileSync(path, "\u001b[2J");
    assert.equal(readOverride(dir), undefined);
    Deno.writeTextFileSync(path, "x".repeat(5000));
    assert.equal(readOverride(dir), undefined);
    Deno.writeFileSync(path, new Uint8Array([0xff, 0xfe]));
    assert.equal(readOverride(dir), undefined);
    Deno.removeSync(path);
    Deno.writeTextFileSync(`${dir}/secret`, "elsewhere");
    Deno.symlinkSync(`${dir}/secret`, path);
    assert.equal(readOverride(dir), undefined);
  });
});

Deno.test("[K-04][K-10] secrets of known forms are found; an ordinary prompt holds none", async () => {
  assert.equal(await holdsSecret(buildPrompt(PARTS)), false);
  const secrets = [
    "ghp_" + "wWPw5k4aXcaT4fNP0UcnZwJUVFk6LO0pINUx",
    "postgres://user:hunter2pass@db.example.com/x",
    `-----BEGIN RSA PRIVATE KEY-----\nMIIEpAIBAAKCAQEA0Z3VS5JJcds3xfn/ygWyF0qJDr\n${
      "ab12".repeat(40)
    }\n-----END RSA PRIVATE KEY-----`,
  ];
  for (const secret of secrets) assert.equal(await holdsSecret(`please use ${secret} there`), true);
});
