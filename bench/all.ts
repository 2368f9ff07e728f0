/**
 * Runs every bench with modest sizes and prints all figures; `deno task bench`. Each is a process of
 * its own. Exit status 1 when one failed (a missed goal is no failure: machines differ).
 *
 *     deno task bench [NAME …]     # only these, e.g. idle restart
 */
const here = new URL("./", import.meta.url).pathname;
const config = new URL("../deno.json", import.meta.url).pathname;

/** Arguments where the bench's own sizes take too long for a look at everything. */
const SIZES: Record<string, string[]> = {
  "coord.ts": ["15", "2", "20"],
  "delivery.ts": ["100"],
  "history.ts": ["50000"],
  "idle.ts": ["20"],
  "passthrough.ts": ["50", "3"],
  "queue.ts": [],
  "restart.ts": ["40"],
  "startup.ts": ["15"],
};

const names = [...Deno.readDirSync(here)].map((entry) => entry.name)
  .filter((name) => name.endsWith(".ts") && name !== "all.ts")
  .filter((name) => Deno.args.length === 0 || Deno.args.includes(name.replace(/\.ts$/, "")))
  .sort();
const failed: string[] = [];
for (const name of names) {
  console.log(`\n== ${name} ${(SIZES[name] ?? []).join(" ")}`);
  const began = performance.now();
  const { success } = await new Deno.Command(Deno.execPath(), {
    args: ["run", "-A", "--no-check", "--frozen", "--config", config, here + name]
      .concat(SIZES[name] ?? []),
    stdin: "null",
    stdout: "inherit",
    stderr: "inherit",
  }).output();
  console.log(`   (${((performance.now() - began) / 1000).toFixed(0)} s)`);
  if (!success) failed.push(name);
}
if (failed.length > 0) console.log(`\nfailed: ${failed.join(", ")}`);
Deno.exit(failed.length === 0 ? 0 : 1);
