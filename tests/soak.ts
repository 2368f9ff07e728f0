/**
 * The fault tests and the model histories with the counts of a night: `deno task soak`. A count that
 * the environment names (`TAMQ_FAULT_…`) stays as it is; `TAMQ_SEED` repeats a run. Takes hours.
 *
 *     deno task soak [PREFIX …]            # only these files, e.g. tests/fault/power_cut
 *     deno task soak --scale 0.1           # a tenth of every count
 */
const ROOT = new URL("../", import.meta.url).pathname;

/** Variable to count. */
const COUNTS: Readonly<Record<string, number>> = {
  KILLS: 10_000,
  COORD_KILLS: 2000,
  QUEUE_KILLS: 2000,
  POWER_CUTS: 1000,
  SECTOR_CUTS: 20_000,
  DISK_ERRORS: 1000,
  PARSES: 5_000_000,
  FRAMES: 5_000_000,
  MODEL_RUNS: 500_000,
  MODEL_STEPS: 60,
  CLOCK_JUMPS: 500,
  REQUESTS: 1_000_000,
  SENDERS_EACH: 200,
  LEASE_RACES: 100_000,
  STARTS: 100,
  PRINTED_MEGABYTES: 1000,
  HISTORY: 1_000_000,
};

const args = [...Deno.args];
const at = args.indexOf("--scale");
const scale = at < 0 ? 1 : Number(args.splice(at, 2)[1]);
if (!(scale > 0)) {
  console.error("soak: --scale takes a number above 0");
  Deno.exit(2);
}
const env: Record<string, string> = {
  // Each call, not a share of them.
  TAMQ_FAULT_KILL_POINTS: "1",
  TAMQ_FAULT_TRACE_ROUNDS: "8",
};
for (const [name, count] of Object.entries(COUNTS)) {
  env[`TAMQ_FAULT_${name}`] = String(Math.max(1, Math.round(count * scale)));
}
for (const name of Object.keys(env)) env[name] = Deno.env.get(name) ?? env[name]!;

const all = [...Deno.readDirSync(`${ROOT}tests/fault`)].map(({ name }) => `tests/fault/${name}`)
  .filter((path) => path.endsWith("_test.ts"))
  .concat("tests/property/queue_test.ts", "tests/integration/history_scale_test.ts")
  .sort();
const wanted = args.length === 0 ? all : all.filter((path) => args.some((a) => path.startsWith(a)));
let failed = 0;
for (const path of wanted) {
  const began = performance.now();
  // A process a file: a night of one leaves nothing to the next.
  const { success } = await new Deno.Command(Deno.execPath(), {
    args: ["test", "-A", "--frozen", "--no-check", path],
    cwd: ROOT,
    env,
    stdin: "null",
    stdout: "inherit",
    stderr: "inherit",
  }).output();
  if (!success) failed++;
  const minutes = (performance.now() - began) / 60_000;
  console.log(`${path}: ${success ? "passed" : "FAILED"} after ${minutes.toFixed(1)} min`);
}
console.log(`${wanted.length - failed} files passed, ${failed} failed`);
Deno.exit(failed === 0 && wanted.length > 0 ? 0 : 1);
