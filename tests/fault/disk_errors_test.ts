/** System calls of the database that fail: the request is refused, nothing is lost, and it goes on. */
import assert from "node:assert/strict";
import { eachOf, entryCommand, needs, run } from "../helpers/fault_tools.ts";
import { faultCount, Seeded } from "../helpers/seeded.ts";
import { withTempDir } from "../helpers/temp.ts";

const canTrace = await needs("strace");
const GOAL = faultCount("DISK_ERRORS", 100);

/** Each with what the refusal says. A failing sync is an I/O error whatever its number. */
const FAULTS = [
  { call: "fsync", error: "EIO", reason: "store_unreadable" },
  { call: "fsync", error: "ENOSPC", reason: "store_unreadable" },
  { call: "pwrite64", error: "EIO", reason: "store_unreadable" },
  { call: "pwrite64", error: "ENOSPC", reason: "store_full" },
  { call: "pwrite64", error: "EROFS", reason: "store_unreadable" },
  { call: "pwrite64", error: "EDQUOT", reason: "store_unreadable" },
] as const;

Deno.test({
  name:
    `[Q-03] [L-04] ${GOAL} failing writes and syncs: refused, nothing lost or doubled, no restart`,
  ignore: !canTrace,
  async fn() {
    const random = new Seeded();
    let faults = 0;
    const told = new Map<string, number>();
    const rounds = function* () {
      while (faults < GOAL) yield* FAULTS;
    };
    await withTempDir((dir) =>
      eachOf(rounds(), 3, async ({ call, error, reason }) => {
        const path = `${dir}/${crypto.randomUUID()}.sqlite3`;
        // From a point after the opening on, every so many calls one fails.
        const first = (call === "fsync" ? 20 : 400) + random.below(20);
        const every = (call === "fsync" ? 5 : 31) + random.below(20);
        const where = `seed ${random.seed}: ${call} ${error} when=${first}+${every}`;
        const { out, err } = await run([
          ...["strace", "-f", "-qq", "-o", "/dev/null", "-e", `trace=${call}`],
          ...["", "-wal"].flatMap((ending) => ["-P", path + ending]),
          ...["-e", `inject=${call}:error=${error}:when=${first}+${every}`],
          ...entryCommand("disk_errors_entry.ts", path, "60"),
        ]);
        assert.match(out, /^\{/, `${where}: ${err}`);
        const { refused, ...rest } = JSON.parse(out);
        assert.deepEqual(rest, { unexpected: "", check: "ok", whole: true, answered: 60 }, where);
        for (const [got, count] of Object.entries(refused)) {
          assert.equal(got, reason, where);
          faults += count as number;
          told.set(`${call} ${error}`, (told.get(`${call} ${error}`) ?? 0) + (count as number));
        }
      })
    );
    console.log(`${faults} faults: ${JSON.stringify(Object.fromEntries(told))}`);
    // Each kind was met, so that none of them passes by never happening.
    assert.equal(told.size, FAULTS.length);
  },
});
