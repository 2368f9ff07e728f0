/** Export and replay against a real service. */
import assert from "node:assert/strict";
import { jsonLines, withHistory } from "../helpers/history_world.ts";
import { runProcess } from "../helpers/world.ts";

Deno.test("[Q-05] an export has one complete envelope a line, oldest first, and works with the service stopped", () =>
  withHistory(async (world) => {
    const never = await world.tamq(["export"]);
    assert.deepEqual([never.code, never.stdout], [0, ""]);
    assert.match(never.stderr, /no messages yet/);

    await world.start();
    await using beta = await world.receiver();
    const metadata = { lease_id: "l1", deep: { list: [1, null, "x"] } };
    const ids = [
      await world.send("one", { metadata, correlation_id: "c1", body: "first\nsecond „ü“" }),
      await world.send("two", { target_repo: "alpha" }),
      await world.send("three", { target_repo: "gamma" }),
    ].map((sent) => sent.message_id);
    await beta.next(1);
    await world.tamq(["cancel", ids[2]!]);
    const file = `${world.dir}/out.jsonl`;
    const exported = await world.tamq(["export", file]);
    assert.deepEqual([exported.code, exported.stdout], [0, ""], exported.stderr);
    assert.equal(Deno.statSync(file).mode! & 0o777, 0o600);
    const text = await Deno.readTextFile(file);
    assert.equal(text.split("\n").length, 4);
    const lines = jsonLines(text);
    assert.deepEqual(lines.map((line) => line.message_id), ids);
    const [one] = lines as [Record<string, unknown>];
    const { created_at, updated_at, injected_at, attempts, ...rest } = one;
    for (const time of [created_at, updated_at, injected_at]) {
      assert.match(String(time), /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/);
    }
    assert.deepEqual(rest, {
      format: "tamq-message-1",
      message_id: ids[0],
      client_id: "test",
      idempotency_key: "one",
      correlation_id: "c1",
      sender_repo: "local",
      target_repo: "beta",
      endpoint_id: null,
      provenance: "cli",
      metadata,
      body: "first\nsecond „ü“",
      state: "injected",
      attempt_count: 1,
      next_attempt_at: null,
      lease_expires_at: null,
      ack_deadline_at: null,
      acknowledged_at: null,
      last_failure_reason: null,
      replay: null,
      policy: { ack_mode: "injected", max_attempts: 4 },
    });
    const [attempt] = attempts as Record<string, unknown>[];
    assert.deepEqual([attempt!.attempt, attempt!.outcome], [1, "written"]);

    await world.stop();
    assert.equal((await world.tamq(["export"])).stdout, text, "standard output, service stopped");
    assert.equal((await world.tamq(["export", "-"])).stdout, text);
    const some = async (...args: string[]) =>
      jsonLines((await world.tamq(["export", ...args])).stdout).map((l) =>
        ids.indexOf(String(l.message_id))
      );
    assert.deepEqual(await some("--repo", "beta"), [0]);
    assert.deepEqual(await some("--repo", "local"), [0, 1, 2]);
    assert.deepEqual(await some("--state", "failed"), [2]);
    assert.deepEqual(await some("--correlation", "c1"), [0]);
    assert.deepEqual(await some("--since", "1h", "--endpoint", "tmux-amq-1"), []);
    assert.deepEqual(await some("--until", "1h"), []);
  }));

Deno.test("[Q-05] exports append; a line cut short before does not swallow the next; errors name the file", () =>
  withHistory(async (world) => {
    await world.start();
    await world.send("one");
    const file = `${world.dir}/out.jsonl`;
    await world.tamq(["export", file]);
    await world.tamq(["export", file]);
    assert.equal(jsonLines(await Deno.readTextFile(file)).length, 2);
    await Deno.writeTextFile(file, '{"cut":"sho', { append: true });
    await world.tamq(["export", file]);
    const lines = (await Deno.readTextFile(file)).split("\n");
    assert.deepEqual([lines.length, lines[2]], [5, '{"cut":"sho']);
    JSON.parse(lines[3]!);
    for (const path of ["/dev/full", `${world.dir}/none/x`, world.dir]) {
      const failed = await world.tamq(["export", path]);
      assert.equal(failed.code, 1, path);
      assert.match(failed.stderr, new RegExp(`^tamq: cannot write ${path}: `), path);
    }
    const quoted = world.argv(["export"]).map((word) => `'${word}'`).join(" ");
    const script = `set -o pipefail; ${quoted} | head -c 1 > /dev/null`;
    const head = await runProcess(["bash", "-c", script], { env: world.env });
    assert.deepEqual([head.code, head.stderr], [0, ""], "a closed pipe ends it quietly");
  }));

Deno.test("[Q-06, T-20] a replay sends each line anew, keeps what it was, and is recognised when repeated", () =>
  withHistory(async (world) => {
    await world.start();
    await using beta = await world.receiver();
    const sent = [];
    for (let i = 0; i < 300; i++) {
      const metadata = i % 3 === 0 ? { n: i } : {};
      const correlation = i % 5 === 0 ? { correlation_id: `c${i}` } : {};
      sent.push(await world.send(`key-${i}`, { metadata, ...correlation, body: `text ${i}\n"…"` }));
    }
    await beta.next(300);
    const file = `${world.dir}/out.jsonl`;
    await world.tamq(["export", file]);
    const before = jsonLines(await Deno.readTextFile(file));

    const args = ["replay", file, "--endpoint", world.endpoint, "--json"];
    const dry = await world.tamq([...args, "--dry-run"]);
    assert.deepEqual(JSON.parse(dry.stdout), {
      batch: null,
      sent: 300,
      deduplicated: 0,
      bad: 0,
      dry_run: true,
      complete: true,
    });
    assert.equal(jsonLines((await world.tamq(["export"])).stdout).length, 300, "nothing was sent");

    const first = await world.tamq(args);
    assert.equal(first.code, 0, first.stderr);
    const { batch, ...counts } = JSON.parse(first.stdout);
    assert.deepEqual(counts, {
      sent: 300,
      deduplicated: 0,
      bad: 0,
      dry_run: false,
      complete: true,
    });
    const shown = await beta.next(300);
    const after = jsonLines((await world.tamq(["export"])).stdout).slice(300);
    assert.deepEqual(after.map((line) => line.message_id), shown, "the order of the file");
    const kept = ["sender_repo", "target_repo", "body", "metadata", "correlation_id"];
    const pick = (line: Record<string, unknown>) => kept.map((name) => line[name]);
    assert.deepEqual(after.map(pick), before.map(pick));
    for (const [i, line] of after.entries()) {
      assert.deepEqual(line.replay, { batch, original_message_id: before[i]!.message_id });
      assert.deepEqual([line.client_id, line.provenance], ["tamq-replay", "replay"]);
      assert.deepEqual([line.idempotency_key, line.endpoint_id], [
        before[i]!.message_id,
        world.endpoint,
      ]);
      assert.notEqual(line.message_id, before[i]!.message_id);
      assert.ok(String(line.created_at) >= String(before[i]!.created_at));
    }

    const again = await world.tamq(args);
    const second = JSON.parse(again.stdout);
    assert.deepEqual([second.sent, second.deduplicated, second.bad], [0, 300, 0]);
    assert.notEqual(second.batch, batch, "a new batch each time");
    assert.equal(jsonLines((await world.tamq(["export"])).stdout).length, 600);
    assert.match(
      (await world.tamq(["replay", file, "--endpoint", world.endpoint])).stdout,
      /^batch \w{26}: 0 sent, 300 deduplicated, 0 bad\n$/,
    );
  }));

Deno.test("[Q-06] bad lines are told with their number and do not stop the good ones, unless --strict", () =>
  withHistory(async (world) => {
    await world.start();
    await using beta = await world.receiver();
    // Not opened together: else what alpha sends is held, also what a replay sends for it.
    assert.equal((await world.tamq(["allow", "alpha", "beta"])).code, 0);
    const line = (fields: Record<string, unknown>) =>
      JSON.stringify({ sender_repo: "alpha", target_repo: "beta", body: "good", ...fields });
    const text = [
      line({ message_id: "m1" }),
      "not json",
      "",
      line({ message_id: "m2", body: "" }),
      line({ message_id: "m3", target_repo: "nobody" }),
      line({ message_id: "m4", target_repo: "gamma" }),
      line({ message_id: "m5", sender_repo: "stranger" }),
      line({ message_id: "m1", body: "other text under a used id" }),
      line({ message_id: "m6", body: "\u001b[2J" }),
      line({ format: "tamq-message-2" }),
      "[1]",
      JSON.stringify({ target_repo: "beta", body: "x" }),
      line({ body: "x".repeat(300_000) }),
      line({ metadata: { x: "y".repeat(4096) } }),
      line({ message_id: "m7", sender_repo: "local" }),
      line({ message_id: "m8", sender_repo: "coordination-engine" }),
    ].join("\n");
    const args = ["replay", "-", "--endpoint", world.endpoint];
    const { code, stdout, stderr } = await world.tamq(args, { stdin: text });
    assert.equal(code, 1);
    assert.match(stdout, /^batch \w{26}: 3 sent, 0 deduplicated, 12 bad\n$/);
    const told = stderr.trim().split("\n").map((one) => one.replace(/^tamq: line /, ""));
    const expected = [
      /^2: not a line of JSON/,
      /^4: the message body is empty/,
      /^5: "nobody" is not a registered repository/,
      /^6: gamma is not open at endpoint/,
      /^7: "stranger" is not a registered repository/,
      /^8: this idempotency key was used for/,
      /^9: .*control character U\+001B/,
      /^10: the format is not/,
      /^11: not a JSON object/,
      /^12: "sender_repo" is missing/,
      /^13: longer than 262144 bytes/,
      /^14: "metadata" has more than 4096 bytes/,
    ];
    assert.equal(told.length, expected.length, stderr);
    for (const [i, pattern] of expected.entries()) assert.match(told[i]!, pattern);
    await beta.next(3);
    const rows = jsonLines((await world.tamq(["export"])).stdout);
    assert.deepEqual(rows.map((row) => row.sender_repo), ["alpha", "local", "coordination-engine"]);

    const strict = async (lines: string[]) => {
      const result = await world.tamq([...args, "--strict", "--json"], { stdin: lines.join("\n") });
      const { sent, bad } = JSON.parse(result.stdout);
      return { code: result.code, sent, bad, lines: jsonLines(result.stderr).map((l) => l.line) };
    };
    // Refused by the reader, and by the service: in both cases nothing after it is sent.
    const good = (id: string) => line({ message_id: id });
    assert.deepEqual(await strict([good("s1"), "nonsense", good("s2"), "nonsense"]), {
      code: 1,
      sent: 1,
      bad: 1,
      lines: [2],
    });
    assert.deepEqual(
      await strict([
        good("s3"),
        line({ message_id: "s4", target_repo: "nobody" }),
        good("s5"),
        "x",
      ]),
      { code: 1, sent: 1, bad: 1, lines: [2] },
    );
    const ids = jsonLines((await world.tamq(["export"])).stdout).slice(3)
      .map((row) => (row.replay as Record<string, unknown>).original_message_id);
    assert.deepEqual(ids, ["s1", "s3"]);
  }));

Deno.test("[T-20] a line without an id is known by its content, whatever the order of its fields", () =>
  withHistory(async (world) => {
    await world.start();
    await using beta = await world.receiver();
    assert.equal((await world.tamq(["allow", "alpha", "beta"])).code, 0);
    const args = ["replay", "-", "--endpoint", world.endpoint, "--json"];
    const replay = async (...lines: string[]) => {
      const { sent, deduplicated } = JSON.parse(
        (await world.tamq(args, { stdin: lines.join("\n") })).stdout,
      );
      return [sent, deduplicated];
    };
    const one = '{"sender_repo":"alpha","target_repo":"beta","body":"x","metadata":{"a":1,"b":2}}';
    const same = '{"body":"x","metadata":{"b":2,"a":1},"target_repo":"beta","sender_repo":"alpha"}';
    const other = one.replace('"a":1', '"a":3');
    assert.deepEqual(await replay(one, same, other), [2, 1]);
    assert.deepEqual(await replay(other, one), [0, 2]);
    await beta.next(2);
    const rows = jsonLines((await world.tamq(["export"])).stdout);
    for (const row of rows) {
      assert.match(String(row.idempotency_key), /^sha256:[0-9a-f]{64}$/);
      assert.equal((row.replay as Record<string, unknown>).original_message_id, null);
    }
  }));

Deno.test("[Q-06, C-07] a replay into nowhere is refused before anything is sent", () =>
  withHistory(async (world) => {
    const file = `${world.dir}/x.jsonl`;
    await Deno.writeTextFile(file, "");
    const without = await world.tamq(["replay", file]);
    assert.deepEqual([without.code, /no endpoint is given/.test(without.stderr)], [2, true]);
    assert.equal((await world.tamq(["replay", file, "--endpoint", "e"])).code, 3, "no service");
    await world.start();
    const dead = await world.tamq(["replay", file, "--endpoint", "tmux-amq-1"]);
    assert.equal(dead.code, 3);
    assert.match(dead.stderr, /endpoint tmux-amq-1 is not live/);
    await using _beta = await world.receiver();
    const missing = await world.tamq(["replay", `${file}.none`, "--endpoint", world.endpoint]);
    assert.deepEqual([missing.code, missing.stdout], [1, ""], "nothing is summed up");
    assert.match(
      missing.stderr,
      /there is no file .*\nhint: check the path and its permissions\n$/,
    );
    const empty = await world.tamq(["replay", file, "--endpoint", world.endpoint]);
    assert.deepEqual([empty.code, /: 0 sent/.test(empty.stdout)], [0, true]);
  }));

Deno.test("[Q-06, B-18] a replay bypasses no gate: what a pair that is not allowed would send is held", () =>
  withHistory(async (world) => {
    await world.start();
    await using beta = await world.receiver();
    const stdin = JSON.stringify({ sender_repo: "alpha", target_repo: "beta", body: "held" });
    const replayed = await world.tamq(["replay", "-", "--endpoint", world.endpoint], { stdin });
    assert.deepEqual([replayed.code, /: 1 sent/.test(replayed.stdout)], [0, true]);
    // What comes after it is shown, it is not.
    const { message_id } = await world.send("from a person");
    assert.deepEqual(await beta.next(1), [message_id]);
    const [held] = jsonLines((await world.tamq(["export"])).stdout);
    assert.deepEqual([held!.body, held!.state, held!.attempt_count], ["held", "pending", 0]);
    assert.equal((await world.tamq(["allow", "alpha", "beta"])).code, 0);
    assert.deepEqual(await beta.next(1), [held!.message_id]);
  }));
