import assert from "node:assert/strict";
import { checkBody, decodeBody, MAX_BODY_BYTES } from "../../../lib/model/body.ts";

function reason(body: string): string {
  const result = checkBody(body);
  return result.ok ? "ok" : result.error.reason;
}

Deno.test("[T-08] a body has 1 to 8192 bytes, counted in UTF-8", () => {
  assert.equal(reason(""), "body_empty");
  assert.equal(reason("x"), "ok");
  assert.equal(reason("x".repeat(MAX_BODY_BYTES)), "ok");
  assert.equal(reason("x".repeat(MAX_BODY_BYTES + 1)), "body_too_large");
  assert.equal(reason("é".repeat(MAX_BODY_BYTES / 2)), "ok");
  assert.equal(reason("é".repeat(MAX_BODY_BYTES / 2) + "x"), "body_too_large");
  assert.equal(reason("😀".repeat(MAX_BODY_BYTES / 4)), "ok");
  assert.equal(reason("😀".repeat(MAX_BODY_BYTES / 4) + "x"), "body_too_large");
  assert.equal(reason("€".repeat(2730) + "xy"), "ok"); // 3 × 2730 + 2 = 8192
  assert.equal(reason("€".repeat(2731)), "body_too_large");
});

Deno.test("[T-08] line breaks, tabs, blanks and blank lines are kept byte for byte", () => {
  const body = "\n first\t\n\n  second  \n\u00a0\u2028\ufeff\n";
  const result = checkBody(body);
  assert.ok(result.ok);
  assert.equal(result.value, body);
});

Deno.test("[T-08] every control character but line feed and tab is binary, and the error names it", () => {
  for (let point = 0; point < 0xa0; point++) {
    if (point >= 0x20 && point < 0x7f) continue;
    const expected = point === 9 || point === 10 ? "ok" : "body_binary";
    assert.equal(reason(`a\nb${String.fromCharCode(point)}c`), expected, `U+${point.toString(16)}`);
  }
  const result = checkBody("a\nb\u001b[2J");
  assert.match(result.ok ? "" : result.error.message, /U\+001B in line 2/);
});

Deno.test("[T-08] text without a UTF-8 form and bytes that are not UTF-8 are refused", () => {
  assert.equal(reason("a\ud800b"), "body_not_utf8");
  for (const bytes of [[0xff], [0xc3], [0xed, 0xa0, 0x80], [0xc0, 0x80]]) {
    const result = decodeBody(Uint8Array.from(bytes));
    assert.equal(result.ok ? "ok" : result.error.reason, "body_not_utf8");
  }
  const text = "\ufeffgrüße\n";
  const result = decodeBody(new TextEncoder().encode(text));
  assert.equal(result.ok && result.value, text);
});
