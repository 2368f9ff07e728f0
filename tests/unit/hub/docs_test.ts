import assert from "node:assert/strict";
import { render } from "../../../scripts/statehub_docs.ts";
import { routes } from "../../../lib/hub/api.ts";
import { openApi } from "../../../lib/hub/openapi.ts";

const ROOT = new URL("../../../", import.meta.url).pathname;

Deno.test("[K-19] docs/statehub.md and its OpenAPI are what the route table says (deno task docs)", async () => {
  for (const [path, text] of Object.entries(await render())) {
    assert.equal(await Deno.readTextFile(ROOT + path), text, `${path} is stale: deno task docs`);
  }
});

Deno.test("[K-19] the OpenAPI document describes every route, with unique names and no loose ends", () => {
  const document = openApi();
  assert.match(document.openapi, /^3\.1\./);
  const paths = document.paths as Record<string, Record<string, Record<string, unknown>>>;
  const names: unknown[] = [];
  for (const [path, operations] of Object.entries(paths)) {
    for (const operation of Object.values(operations)) {
      names.push(operation.operationId);
      const declared = (operation.parameters as { in: string; name: string; required: boolean }[])
        .filter((parameter) => parameter.in === "path");
      assert.deepEqual(
        declared.map((parameter) => parameter.name),
        [...path.matchAll(/\{(\w+)\}/g)].map((match) => match[1]),
      );
      assert.ok(declared.every((parameter) => parameter.required));
    }
  }
  assert.deepEqual(names.sort(), Object.keys(routes).sort());
  const refs = [...JSON.stringify(document).matchAll(/"\$ref":"([^"]+)"/g)].map((match) =>
    match[1]
  );
  const known = Object.keys((document.components as { schemas: object }).schemas);
  assert.deepEqual(
    [...new Set(refs)].sort(),
    known.map((name) => `#/components/schemas/${name}`).sort(),
  );
});
