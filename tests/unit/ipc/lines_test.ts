import assert from "node:assert/strict";
import fc from "fast-check";
import { encodeLine, LineReader, type NoLine } from "../../../lib/ipc/lines.ts";

/** Hands out `bytes` in pieces of the given sizes, over and over. */
function source(bytes: Uint8Array, sizes: readonly number[]) {
  let at = 0;
  let turn = 0;
  return {
    read(into: Uint8Array): Promise<number | null> {
      if (at === bytes.length) return Promise.resolve(null);
      const size = Math.min(sizes[turn++ % sizes.length]!, into.length, bytes.length - at);
      into.set(bytes.subarray(at, at + size));
      at += size;
      return Promise.resolve(size);
    },
  };
}

async function readAll(bytes: Uint8Array, sizes: readonly number[], limit: number) {
  const reader = new LineReader(source(bytes, sizes), limit);
  const lines: number[][] = [];
  for (;;) {
    const line: Uint8Array | NoLine = await reader.next();
    if (typeof line === "string") return { lines, end: line };
    lines.push([...line]);
  }
}

Deno.test("[T-22] lines come out whole however their bytes arrive", async () => {
  const line = fc.uint8Array({ maxLength: 5000 }).map((bytes) =>
    bytes.map((b) => b === 10 ? 11 : b)
  );
  await fc.assert(fc.asyncProperty(
    fc.array(line, { maxLength: 5 }),
    fc.array(fc.integer({ min: 1, max: 3000 }), { minLength: 1, maxLength: 5 }),
    async (lines, sizes) => {
      const bytes = new Uint8Array(lines.flatMap((one) => [...one, 10]));
      const read = await readAll(bytes, sizes, 5000);
      assert.deepEqual(read, { lines: lines.map((one) => [...one]), end: "end" });
    },
  ));
});

Deno.test("[T-22] a line of exactly the limit passes; one byte more is too large", async () => {
  for (const sizes of [[1], [7, 4096], [70000]]) {
    const fits = new Uint8Array(65537).fill(97);
    fits[65536] = 10;
    assert.deepEqual((await readAll(fits, sizes, 65536)).end, "end");
    const over = new Uint8Array(65538).fill(97);
    over[65537] = 10;
    assert.deepEqual(await readAll(over, sizes, 65536), { lines: [], end: "too_large" });
    // Refused without its end: nobody has to send one.
    assert.deepEqual((await readAll(over.subarray(0, 65537), sizes, 65536)).end, "too_large");
  }
});

Deno.test("[T-22] an end inside a line is told from an end between lines", async () => {
  assert.equal((await readAll(new Uint8Array([97, 10]), [1], 9)).end, "end");
  assert.equal((await readAll(new Uint8Array([97, 10, 97]), [1], 9)).end, "incomplete");
});

Deno.test("[T-22] a frame is one line whatever its text holds", () => {
  const line = new TextDecoder().decode(encodeLine({ body: "a\nb\r\u2028\u0000" }));
  assert.equal(line.indexOf("\n"), line.length - 1);
});
