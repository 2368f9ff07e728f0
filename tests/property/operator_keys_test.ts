import assert from "node:assert/strict";
import fc from "fast-check";
import { concat, InputHold } from "../../lib/pty/hold.ts";
import { KeyTokens } from "../../lib/pty/keys.ts";

const encoder = new TextEncoder();
const input = fc.array(
  fc.oneof(
    fc.constantFrom(
      "a",
      "ž",
      "\r",
      "\x03",
      "\x1b",
      "\x1b[A",
      "\x1b[12;3R",
      "\x1b[200~",
      "x\ry",
      "\x1b[201~",
      "\x1b]11;rgb:0/0/0\x1b\\",
      "\x1bOP",
      "\x1b[M !!",
    ).map((text) => encoder.encode(text)),
    fc.uint8Array({ maxLength: 4 }),
  ),
  { maxLength: 40 },
).map((parts) => concat(parts));

Deno.test("[B-01][B-08] tokens of keys hold every byte in order, however the input is cut", () => {
  fc.assert(
    fc.property(input, fc.nat(100), (bytes, cut) => {
      const at = Math.min(cut, bytes.length);
      const keys = new KeyTokens();
      const parts = [bytes.subarray(0, at), bytes.subarray(at)].flatMap((part) => keys.feed(part));
      assert.deepEqual(concat([...parts.map(({ bytes }) => bytes), keys.partial]), bytes);
    }),
    { numRuns: 5000 },
  );
});

Deno.test("[B-08] a hold releases what it held in order and loses no byte", () => {
  fc.assert(
    fc.property(input, input, input, fc.boolean(), (before, during, after, cut) => {
      const keys = new KeyTokens();
      const hold = new InputHold(keys);
      const out: Uint8Array[] = [];
      const type = (bytes: Uint8Array<ArrayBuffer>) => {
        const tokens = keys.feed(bytes);
        out.push(hold.filter(bytes, tokens));
        return tokens;
      };
      type(before);
      const held = hold.begin();
      assert.equal(held, keys.boundary);
      const tokens = cut ? [...during].flatMap((byte) => type(Uint8Array.of(byte))) : type(during);
      const urgent = tokens.filter((token) =>
        token.type === "reply" ||
        (token.type === "control" && [0x03, 0x1a, 0x1c].includes(token.byte))
      );
      out.push(hold.end());
      type(after);
      const total = concat(out);
      assert.equal(total.length, before.length + during.length + after.length);
      // Without replies and interrupts to let through, the order is exactly as typed.
      if (urgent.length === 0) assert.deepEqual(total, concat([before, during, after]));
    }),
    { numRuns: 5000 },
  );
});

Deno.test("[B-08] a hold lets terminal replies and ^C through at once", () => {
  const keys = new KeyTokens();
  const hold = new InputHold(keys);
  let broken = "";
  hold.onBroken = (why) => broken = why;
  assert.ok(hold.begin());
  const type = (text: string) => {
    const bytes = encoder.encode(text);
    return new TextDecoder().decode(hold.filter(bytes, keys.feed(bytes)));
  };
  assert.equal(type("ab\x1b[1;1R"), "\x1b[1;1R");
  assert.equal(type("\x1b]11;r"), "");
  assert.equal(type("gb:0\x07c"), "\x1b]11;rgb:0\x07");
  assert.equal(broken, "");
  assert.equal(type("d\x03"), "\x03");
  assert.equal(broken, "interrupt");
  assert.equal(type("x".repeat(70_000)), "");
  assert.equal(broken, "overflow");
  assert.equal(new TextDecoder().decode(hold.end()), "abcd" + "x".repeat(70_000));
});
