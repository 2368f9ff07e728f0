/** Notes when each delivered line arrived: a JSON line {sent, got} in microseconds to FILE. */
const [file] = Deno.args;
const out = Deno.openSync(file!, { create: true, append: true });
const encoder = new TextEncoder();
const decoder = new TextDecoder();
const buffer = new Uint8Array(65536);
let rest = "";
console.log("ready");
for (;;) {
  const n = Deno.stdin.readSync(buffer);
  if (n === null) break;
  const got = (performance.timeOrigin + performance.now()) * 1000;
  rest += decoder.decode(buffer.subarray(0, n), { stream: true });
  const lines = rest.split("\n");
  rest = lines.pop()!;
  for (const line of lines) {
    const sent = /^From:alpha: (\d+(?:\.\d+)?)$/.exec(line)?.[1];
    if (sent !== undefined) {
      out.writeSync(encoder.encode(JSON.stringify({ sent: Number(sent), got }) + "\n"));
    }
  }
}
