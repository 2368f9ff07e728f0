/** Prints COUNT blocks for beta, one every GAP milliseconds; the body is the time of printing in µs. */
const [count, gap] = Deno.args.map(Number);
const encoder = new TextEncoder();
console.log("ready");
await new Promise((resolve) => setTimeout(resolve, 1500)); // beta's window settles first
for (let i = 0; i < count!; i++) {
  const now = (performance.timeOrigin + performance.now()) * 1000;
  Deno.stdout.writeSync(encoder.encode(`To:beta: ${now}\n\n`));
  await new Promise((resolve) => setTimeout(resolve, gap));
}
console.log("all printed");
await new Promise(() => {});
