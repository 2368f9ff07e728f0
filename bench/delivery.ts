/**
 * From a block that closes in one terminal to its line in the program of the other: real tmux, real
 * brokers, real service, profile plain. Prints percentiles in milliseconds.
 *
 *     deno run -A bench/delivery.ts [COUNT]
 */
import { World } from "../tests/helpers/world.ts";

const count = Number(Deno.args[0] ?? 300);
const here = new URL("./workers/", import.meta.url).pathname;

await using world = await World.create(["alpha", "beta"]);
// More than anybody writes: the storm guard must not stop the measurement.
await Deno.mkdir(`${world.dir}/config/tamq`);
await Deno.writeTextFile(`${world.dir}/config/tamq/config.toml`, "[guard]\nburst = 1000000\n");
const log = `${world.dir}/arrivals`;
const worker = (file: string, ...args: string[]) =>
  [Deno.execPath(), "run", "-A", "--quiet", "--no-lock", here + file, ...args]
    .map((word) => `'${word}'`).join(" ");
await world.open(worker("beta.ts", log), "beta");
await world.untilScreen("beta", "ready");
await world.open(worker("alpha.ts", String(count), "25"), "alpha");

const arrivals = await world.until(`${count} arrivals`, async () => {
  const text = await Deno.readTextFile(log).catch(() => "");
  const lines = text.split("\n").filter((line) => line !== "");
  return lines.length >= count && lines.map((l) => JSON.parse(l) as { sent: number; got: number });
});
const ms = arrivals.map(({ sent, got }) => (got - sent) / 1000).sort((a, b) => a - b);
const at = (share: number) =>
  ms[Math.min(ms.length - 1, Math.floor(ms.length * share))]!.toFixed(2);
console.log(
  `block closed -> read by the other program, ${count} messages: ` +
    `p50 ${at(0.5)} ms, p90 ${at(0.9)} ms, p99 ${at(0.99)} ms, max ${at(1)} ms`,
);
