/** The counts of a night (`deno task soak`) are those that the tests ask for. */
import assert from "node:assert/strict";

const TESTS = new URL("../", import.meta.url).pathname;

function* sources(dir: string): Generator<string> {
  for (const { name, isDirectory } of Deno.readDirSync(dir)) {
    if (isDirectory) yield* sources(`${dir}${name}/`);
    else if (name.endsWith(".ts")) yield `${dir}${name}`;
  }
}

Deno.test("[V-01] every count of the fault tests has its nightly value, and each nightly value its test", () => {
  const asked = new Map<string, string>();
  for (const path of sources(TESTS)) {
    for (const [, name] of Deno.readTextFileSync(path).matchAll(/faultCount\("([A-Z_]+)"/g)) {
      asked.set(name!, path);
    }
  }
  const soak = Deno.readTextFileSync(`${TESTS}soak.ts`);
  const nightly = [...soak.matchAll(/^ {2}(?:TAMQ_FAULT_)?([A-Z_]+): ["\d]/gm)]
    .map(([, name]) => name!);
  assert.deepEqual(nightly.sort(), [...asked.keys()].sort());
});
