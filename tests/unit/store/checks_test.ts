/** The CHECK constraints and the transition function must say the same. */
import assert from "node:assert/strict";
import { EVENT_TYPES, type MessageEvent, STATES, transition } from "../../../lib/model/message.ts";
import { openStore } from "../../../lib/store/store.ts";
import type { Database } from "../../../lib/sqlite/open.ts";
import { FakeClock } from "../../helpers/clock.ts";
import { withTempDir } from "../../helpers/temp.ts";

function withStore(body: (db: Database) => void) {
  return withTempDir(async (dir) => {
    const { db, store } = await openStore(`${dir}/t.sqlite3`, {
      busyTimeoutMs: 50,
      clock: new FakeClock(),
    });
    try {
      store.endpoints.register({
        endpointId: "tmux-amq-1",
        generation: "g",
        session: "s",
        protocol: "0.1",
        capabilities: [],
      }, 0);
      body(db);
    } finally {
      db.close();
    }
  });
}

type Row = Record<string, string | number | null | Uint8Array>;

function row(fields: Row): Row {
  return {
    message_id: "0".repeat(26),
    client_id: "c",
    idempotency_key: "k",
    request_digest: new Uint8Array(32),
    sender_repo: "local",
    target_repo: "beta",
    provenance: "cli",
    state: "pending",
    attempt_count: 0,
    max_attempts: 2,
    ack_mode: "injected",
    created_at: 1,
    updated_at: 1,
    eligible_at: 1,
    metadata: "{}",
    body: "x",
    ...fields,
  };
}

/** Whether the schema takes the row; leaves nothing behind. */
function accepts(db: Database, fields: Row): boolean {
  const full = row(fields);
  const names = Object.keys(full);
  db.prepare("SAVEPOINT try").run();
  try {
    db.prepare(
      `INSERT INTO messages (${names.join(", ")}) VALUES (${names.map(() => "?").join(", ")})`,
    ).run(...Object.values(full));
    return true;
  } catch (error) {
    assert.match(String(error), /constraint|cannot store|malformed JSON/i);
    return false;
  } finally {
    db.prepare("ROLLBACK TO try").run();
    db.prepare("RELEASE try").run();
  }
}

/** Every combination of `flags` set or not. */
function* combinations<const F extends string>(flags: readonly F[]): Generator<Record<F, boolean>> {
  for (let bits = 0; bits < 2 ** flags.length; bits++) {
    const entries = flags.map((flag, index) => [flag, (bits & (1 << index)) !== 0]);
    yield Object.fromEntries(entries) as Record<F, boolean>;
  }
}

Deno.test("[T-11] the schema takes exactly the combinations that the states mean", () =>
  withStore((db) => {
    const flags = ["leased", "backoff", "deadline", "acked", "written", "reason", "acks"] as const;
    let taken = 0;
    for (const state of STATES) {
      for (const has of combinations(flags)) {
        for (const attempts of [-1, 0, 1, 2, 3]) {
          const got = accepts(db, {
            state,
            lease_token: has.leased ? "t" : null,
            lease_expires_at: has.leased ? 5 : null,
            lease_endpoint: has.leased ? 1 : null,
            lease_holder: has.leased ? "1 g" : null,
            next_attempt_at: has.backoff ? 5 : null,
            ack_deadline_at: has.deadline ? 5 : null,
            acknowledged_at: has.acked ? 5 : null,
            injected_at: has.written ? 5 : null,
            last_failure_reason: has.reason ? "r" : null,
            ack_mode: has.acks ? "acknowledged" : "injected",
            attempt_count: attempts,
          });
          // By hand, state by state; two attempts are the cap.
          const idle = !has.leased && !has.backoff;
          const meant = attempts >= 0 && attempts <= 2 && {
            pending: !has.deadline && !has.acked &&
              (has.leased ? attempts > 0 && !has.backoff : attempts < 2),
            awaiting_ack: idle && has.deadline && has.written && has.acks && attempts > 0 &&
              !has.acked,
            injected: idle && has.written && !has.acks && attempts > 0 && !has.acked &&
              !has.deadline,
            acknowledged: idle && has.acked && !has.deadline,
            failed: idle && has.reason && !has.deadline && !has.acked,
          }[state];
          assert.equal(got, meant, JSON.stringify({ state, attempts, ...has }));
          if (got) taken++;
        }
      }
    }
    // 48 pending, 4 awaiting, 4 injected, 24 acknowledged, 12 failed.
    assert.equal(taken, 92);
  }));

Deno.test("[T-11] a lease is whole or absent", () =>
  withStore((db) => {
    const whole = { lease_token: "t", lease_expires_at: 5, lease_endpoint: 1, lease_holder: "1 g" };
    assert.equal(accepts(db, { ...whole, attempt_count: 1 }), true);
    for (const missing of Object.keys(whole)) {
      assert.equal(accepts(db, { ...whole, attempt_count: 1, [missing]: null }), false, missing);
    }
  }));

Deno.test("[T-08] the schema bounds body and metadata in bytes", () =>
  withStore((db) => {
    const object = (bytes: number) => `{"k":"${"x".repeat(bytes - 8)}"}`;
    const cases: [Row, boolean][] = [
      [{ body: "" }, false],
      [{ body: "é".repeat(4096) }, true],
      [{ body: "é".repeat(4096) + "x" }, false],
      [{ metadata: object(4096) }, true],
      [{ metadata: object(4097) }, false],
      [{ metadata: "[]" }, false],
      [{ metadata: "nonsense" }, false],
      [{ max_attempts: 9 }, true],
      [{ max_attempts: 10 }, false],
      [{ max_attempts: 0 }, false],
      [{ provenance: "somebody" }, false],
      [{ state: "lost" }, false],
      [{ endpoint: 99 }, false],
      [{ eligible_at: "soon" }, false],
    ];
    for (const [fields, expected] of cases) {
      assert.equal(accepts(db, fields), expected, JSON.stringify(fields).slice(0, 80));
    }
  }));

/** A row of each state that the CHECKs take. */
const SAMPLES: Record<string, Row> = {
  pending: {
    state: "pending",
    attempt_count: 1,
    injected_at: null,
    acknowledged_at: null,
    ack_deadline_at: null,
    last_failure_reason: null,
  },
  awaiting_ack: {
    state: "awaiting_ack",
    attempt_count: 1,
    ack_mode: "acknowledged",
    injected_at: 5,
    ack_deadline_at: 6,
    acknowledged_at: null,
    last_failure_reason: null,
  },
  injected: {
    state: "injected",
    attempt_count: 1,
    ack_mode: "injected",
    injected_at: 5,
    ack_deadline_at: null,
    acknowledged_at: null,
    last_failure_reason: null,
  },
  acknowledged: {
    state: "acknowledged",
    attempt_count: 1,
    injected_at: null,
    acknowledged_at: 7,
    ack_deadline_at: null,
    last_failure_reason: null,
  },
  failed: {
    state: "failed",
    attempt_count: 1,
    injected_at: null,
    acknowledged_at: null,
    ack_deadline_at: null,
    last_failure_reason: "r",
  },
};

Deno.test("[T-11] the schema lets a state become another exactly where some event leads there", () =>
  withStore((db) => {
    const events: MessageEvent[] = EVENT_TYPES.flatMap((type) =>
      [true, false].flatMap((capped) =>
        (["injected", "acknowledged"] as const).map((ackMode) =>
          ({ type, capped, ackMode }) as MessageEvent
        )
      )
    );
    for (const from of STATES) {
      const reachable = new Set<string>([from]);
      for (const event of events) {
        for (const leased of [false, true]) {
          const result = transition({ state: from, leased }, event);
          if (result.ok) reachable.add(result.value.next.state);
        }
      }
      for (const to of STATES) {
        const start = row(SAMPLES[from]!);
        const names = Object.keys(start);
        db.prepare("DELETE FROM messages").run();
        db.prepare(
          `INSERT INTO messages (${names.join(", ")}) VALUES (${names.map(() => "?").join(", ")})`,
        ).run(...Object.values(start));
        const change = SAMPLES[to]!;
        const update = db.prepare(
          `UPDATE messages SET ${Object.keys(change).map((name) => `${name} = ?`).join(", ")}`,
        );
        let moved = true;
        try {
          update.run(...Object.values(change));
        } catch (error) {
          assert.match(String(error), /no such transition/);
          moved = false;
        }
        assert.equal(moved, reachable.has(to), `${from} -> ${to}`);
      }
    }
  }));
