/** What a replay of an export keeps, whatever the messages were. */
import assert from "node:assert/strict";
import fc from "fast-check";
import { packs } from "../../lib/cli/replay_file.ts";
import { checkBody, MAX_METADATA_BYTES } from "../../lib/model/body.ts";
import { parseReplayLine } from "../../lib/model/replay.ts";
import { exportLines } from "../../lib/store/export.ts";
import { withQueue } from "../helpers/queue_rig.ts";

const SEED = Number(Deno.env.get("TAMQ_SEED")) || undefined;

const text = fc.oneof(
  fc.string({ unit: "grapheme", minLength: 1, maxLength: 200 }),
  fc.string({ unit: "binary", minLength: 1, maxLength: 200 }),
  fc.constantFrom(
    "\n",
    "\t",
    '"\\"',
    "\u2028\u2029",
    "\ufeffx",
    "x".repeat(8192),
    '"'.repeat(8192),
  ),
).filter((body) => checkBody(body).ok);

const metadata = fc.dictionary(
  fc.string({ maxLength: 20 }).filter((key) => key !== "__proto__"),
  fc.jsonValue({ maxDepth: 3, noUnicodeString: false }),
  { maxKeys: 6 },
).map((value) => JSON.parse(JSON.stringify(value)) as Record<string, unknown>).filter((value) =>
  !/"__proto__"/.test(JSON.stringify(value)) &&
  new TextEncoder().encode(JSON.stringify(value)).length <= MAX_METADATA_BYTES
);

const message = fc.record({
  body: text,
  metadata,
  sender_repo: fc.constantFrom("local", "alpha", "gamma"),
  correlation_id: fc.option(fc.stringMatching(/^[!-~]{1,40}$/), { nil: undefined }),
});

/** `bytes` in pieces of these sizes, over and over. */
async function* pieces(bytes: Uint8Array, sizes: readonly number[]): AsyncGenerator<Uint8Array> {
  for (let at = 0, i = 0; at < bytes.length; i++) {
    const size = sizes[i % sizes.length]!;
    yield bytes.subarray(at, at + size);
    at += size;
  }
}

Deno.test("[Q-05, Q-06, T-20] export and replay keep sender, target, body, metadata, correlation and the original id", () =>
  withQueue(async (rig) => {
    let batch = 0;
    await fc.assert(
      fc.asyncProperty(
        fc.array(message, { minLength: 1, maxLength: 12 }),
        fc.array(fc.integer({ min: 1, max: 5000 }), { minLength: 1, maxLength: 4 }),
        async (messages, sizes) => {
          const beta = await rig.attach({ repo: "beta", open: false });
          const first = Number(rig.db.prepare("SELECT max(seq) AS n FROM messages").get()!.n ?? 0);
          const window = await rig.attach({ repo: "alpha", server: 200, open: false });
          const gamma = await rig.attach({ repo: "gamma", server: 200, open: false });
          const origin = { local: {}, alpha: window.origin, gamma: gamma.origin };
          const ids: string[] = [];
          for (const { sender_repo, ...fields } of messages) {
            const from = origin[sender_repo as keyof typeof origin];
            const provenance = sender_repo === "local" ? "cli" : "worker";
            ids.push(await rig.send({ ...fields, sender_repo, provenance }, from));
          }
          const lines = () => [...exportLines(rig.db, {})].flat().slice(first);
          const bytes = new TextEncoder().encode(lines().join("\n"));
          const before = lines().map((line) => JSON.parse(line));
          assert.deepEqual(before.map((line) => line.message_id), ids);

          batch++;
          let sent = 0;
          for await (const pack of packs(pieces(bytes, sizes), false)) {
            const { results } = await rig.queue.replay({
              batch: `batch ${batch}`,
              endpoint_id: "tmux-amq-100",
              entries: [...pack.entries],
            }, {});
            for (const result of results) assert.ok(result.ok && !result.deduplicated);
            sent += results.length;
          }
          assert.equal(sent, messages.length);
          const after = lines().slice(messages.length).map((line) => JSON.parse(line));
          for (const [i, line] of after.entries()) {
            for (
              const field of ["sender_repo", "target_repo", "body", "metadata", "correlation_id"]
            ) {
              assert.deepEqual(line[field], before[i][field]);
            }
            assert.equal(line.body, messages[i]!.body);
            assert.deepEqual(line.metadata, messages[i]!.metadata);
            assert.deepEqual(line.replay, {
              batch: `batch ${batch}`,
              original_message_id: ids[i],
            });
            assert.notEqual(line.message_id, ids[i]);
          }
          for (const broker of [beta, window, gamma]) await rig.queue.detach(broker.attached);
        },
      ),
      { numRuns: 60, seed: SEED },
    );
  }));

Deno.test("[Q-06] no line, whatever it holds, makes the reader throw; every line is an entry or has a reason", async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.array(fc.oneof(fc.uint8Array({ maxLength: 60 }), fc.json().map(bytesOf))),
      async (parts) => {
        const newline = bytesOf("\n");
        const chunks = parts.flatMap((part) => [part, newline]);
        let lines = 0;
        for await (const pack of packs(pieces(joined(chunks), [7]), false)) {
          lines += pack.lines.length;
          assert.equal(pack.entries.length, pack.lines.filter((line) => "entry" in line).length);
        }
        assert.ok(lines <= chunks.length + parts.reduce((n, part) => n + part.length, 0));
      },
    ),
    { numRuns: 300, seed: SEED },
  );
  fc.assert(
    fc.property(fc.jsonValue(), (value) => {
      const parsed = parseReplayLine(JSON.stringify(value));
      assert.ok(parsed.ok || parsed.error.message !== "");
    }),
    { seed: SEED },
  );
});

function bytesOf(value: string): Uint8Array {
  return new TextEncoder().encode(value);
}

function joined(chunks: readonly Uint8Array[]): Uint8Array {
  return Uint8Array.from(chunks.flatMap((chunk) => [...chunk]));
}
