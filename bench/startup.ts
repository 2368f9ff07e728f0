/**
 * Whole processes, in turns: a `deno run` of an empty file, `tamq --version`, `tamq ping` and
 * `tamq send` from source, against a running service. Prints medians and the ratio to the empty file.
 *
 *     deno run -A bench/startup.ts [ROUNDS]
 */
import { runProcess, World } from "../tests/helpers/world.ts";

const rounds = Number(Deno.args[0] ?? 30);
await using world = await World.create(["alpha"]);
await world.mustTamq(["serve", "--detach"]);
const empty = `${world.dir}/empty.ts`;
await Deno.writeTextFile(empty, "");
const programs: Record<string, string[]> = {
  "empty file": [Deno.execPath(), "run", "-A", "--no-check", empty],
  "tamq --version": world.argv(["--version"]),
  "tamq ping": world.argv(["ping"]),
  "tamq send": world.argv(["send", "To:alpha: hello"]),
};
const times = new Map(Object.keys(programs).map((name) => [name, [] as number[]]));
for (let round = -2; round < rounds; round++) { // two rounds to warm up
  for (const [name, argv] of Object.entries(programs)) {
    const start = performance.now();
    const { code, stderr } = await runProcess(argv, { env: world.env, clearEnv: true });
    if (code !== 0) throw new Error(`${name}: ${stderr}`);
    if (round >= 0) times.get(name)!.push(performance.now() - start);
  }
}
const median = (values: number[]) => values.toSorted((a, b) => a - b)[values.length >> 1]!;
const base = times.get("empty file")!;
for (const [name, values] of times) {
  const ratio = median(values.map((value, i) => value / base[i]!));
  console.log(
    `${name.padEnd(16)} median ${median(values).toFixed(1)} ms, ratio ${ratio.toFixed(2)}`,
  );
}
