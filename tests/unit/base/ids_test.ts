import assert from "node:assert/strict";
import { newId, newToken } from "../../../lib/base/ids.ts";
import { systemRandom } from "../../../lib/base/random.ts";

Deno.test("ids have 26 unmistakable characters and begin with their time", () => {
  const at = (ms: number) => newId({ now: () => ms }, systemRandom);
  for (const id of [at(0), at(Date.UTC(2030, 0, 1)), at(2 ** 48 - 1), newToken(systemRandom)]) {
    assert.match(id, /^[0-7][0-9a-hjkmnp-tv-z]{25}$/);
  }
  assert.equal(at(0).slice(0, 9), "000000000");
  assert.equal(at(1000).slice(0, 9) < at(2000).slice(0, 9), true);
  assert.notEqual(at(5), at(5));
});

Deno.test("a clock before 1970 or one that gives fractions still makes an id", () => {
  assert.match(newId({ now: () => -5.5 }, systemRandom), /^0000000000/);
});
