/** Beginnings of message ids: what they resolve to, and what is searched for them. */
import assert from "node:assert/strict";
import { newId } from "../../../lib/base/ids.ts";
import { systemRandom } from "../../../lib/base/random.ts";
import { isBeginning, type ReadPage, wholeId } from "../../../lib/cli/message_ids.ts";

const NOW = Date.parse("2030-01-31T09:00:00Z");

/** History in pages of two; remembers the spans that were asked for. */
function history(ids: readonly { id: string; at: number }[]) {
  const spans: number[] = [];
  const read: ReadPage = ({ since, until, cursor }) => {
    const from = Date.parse(since!);
    const to = Date.parse(until!);
    spans.push(to - from);
    const start = Number(cursor ?? 0);
    const all = ids.filter(({ at }) => at >= from && at < to);
    return {
      messages: all.slice(start, start + 2).map(({ id }) => ({ message_id: id })),
      next_cursor: start + 2 < all.length ? String(start + 2) : null,
    };
  };
  return { read, spans };
}

Deno.test("[C-01] a message is found by any beginning of its id that is unique, from six characters on", async () => {
  const ids = [0, 1, 7, 2000, 400_000, 90_000_000].map((ms) => ({
    id: newId({ now: () => NOW + ms }, systemRandom),
    at: NOW + ms,
  }));
  const { read, spans } = history(ids);
  for (const { id } of ids) {
    for (let length = 6; length <= 26; length++) {
      const start = id.slice(0, length);
      const alike = ids.filter((one) => one.id.startsWith(start));
      if (alike.length === 1) assert.equal(await wholeId(start, read), id);
      else {
        await assert.rejects(
          async () => await wholeId(start, read),
          (error: { reason?: string; hint?: string }) =>
            error.reason === "ambiguous_id" &&
            alike.filter((one) => error.hint!.includes(one.id)).length >= 2,
        );
      }
    }
  }
  assert.ok(Math.max(...spans) < 20 * 60_000, "only the time that the beginning says is searched");
});

Deno.test("[C-01] what is no beginning of an id, or of none that is known, stays as it is and is not guessed", async () => {
  const { read, spans } = history([]);
  for (const text of ["", "06zz1", "nope-no", "0123456789ilou", "x".repeat(27), "UPPERCASE"]) {
    assert.equal(isBeginning(text), false, text);
    assert.equal(await wholeId(text, read), text);
  }
  assert.deepEqual(spans, []);
  assert.equal(await wholeId("06zz12", read), "06zz12");
  assert.equal(await wholeId("zzzzzz", read), "zzzzzz", "a time beyond every calendar");
});
