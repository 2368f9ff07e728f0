import assert from "node:assert/strict";
import { DatabaseSync } from "node:sqlite";
import fc from "fast-check";
import {
  findCycle,
  MESSAGE_STATES,
  moveMessage,
  movePlan,
  moveTask,
  PLAN_MOVES,
  PLAN_STATUSES,
  TASK_MOVES,
  TASK_STATUSES,
} from "../../../lib/hub/rules.ts";
import { MIGRATIONS } from "../../../lib/hub/store/migrations.ts";

Deno.test("[K-19] moves of tasks and plans are total and say what is allowed instead", () => {
  for (const from of TASK_STATUSES) {
    for (const to of TASK_STATUSES) {
      for (const unsatisfied of [0, 1]) {
        const result = moveTask(from, to, unsatisfied);
        const listed = from === to || TASK_MOVES[from].includes(to);
        const free = unsatisfied === 0 || from === to || (to !== "active" && to !== "done");
        assert.equal(result.ok, listed && free, `${from} -> ${to}`);
        if (!result.ok) assert.deepEqual(result.error.allowed, TASK_MOVES[from]);
      }
    }
  }
  for (const from of PLAN_STATUSES) {
    for (const to of PLAN_STATUSES) {
      assert.equal(movePlan(from, to).ok, from === to || PLAN_MOVES[from].includes(to));
    }
  }
  for (const from of MESSAGE_STATES) {
    for (const to of MESSAGE_STATES) {
      const now = moveMessage(from, to);
      assert.ok(MESSAGE_STATES.indexOf(now) >= MESSAGE_STATES.indexOf(from));
    }
  }
});

Deno.test("[K-19][Q-01] the schema's checks know the same words as the rules, in STRICT tables", () => {
  const db = new DatabaseSync(":memory:");
  for (const statement of MIGRATIONS[0]!.statements) db.prepare(statement).run();
  const tables = db.prepare("SELECT name, sql FROM sqlite_schema WHERE type = 'table'").all();
  const sqlOf = (name: string) => String(tables.find((table) => table.name === name)!.sql);
  for (const { name, sql } of tables) {
    if (name !== "sqlite_sequence") assert.match(String(sql), /\)\s*STRICT/, String(name));
  }
  const words = (sql: string, column: string) =>
    [...new RegExp(`${column} IN \\(([^)]*)\\)`).exec(sql)![1]!.matchAll(/'(\w+)'/g)].map((m) =>
      m[1]
    );
  assert.deepEqual(words(sqlOf("tasks"), "status"), [...TASK_STATUSES]);
  assert.deepEqual(words(sqlOf("workplans"), "status"), [...PLAN_STATUSES]);
  assert.deepEqual(words(sqlOf("messages"), "state"), [...MESSAGE_STATES]);
  db.close();
});

Deno.test("[K-19] a cycle is found exactly when there is one, and the path is one", () => {
  const node = fc.integer({ min: 0, max: 7 }).map(String);
  fc.assert(
    fc.property(fc.array(fc.tuple(node, node), { maxLength: 20 }), (edges) => {
      const graph = new Map<string, Set<string>>();
      const next = (from: string) => [...graph.get(from) ?? []];
      const reaches = (from: string, to: string, seen = new Set<string>()): boolean =>
        from === to || next(from).some((n) => !seen.has(n) && (seen.add(n), reaches(n, to, seen)));
      for (const [from, to] of edges) {
        const cycle = findCycle(from, [to], next);
        assert.equal(cycle !== undefined, reaches(to, from));
        if (cycle === undefined) {
          (graph.get(from) ?? graph.set(from, new Set()).get(from)!).add(to);
          continue;
        }
        assert.equal(cycle[0], from);
        assert.equal(cycle.at(-1), from);
        assert.equal(cycle[1], to);
        for (let i = 1; i < cycle.length - 1; i++) {
          assert.ok(next(cycle[i]!).includes(cycle[i + 1]!));
        }
      }
    }),
    { numRuns: 2000 },
  );
});
