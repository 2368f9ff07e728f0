import assert from "node:assert/strict";
import { parseConfig } from "../../../lib/config_schema.ts";
import { DEFAULT_GUARD, DEFAULT_ROUTING } from "../../../lib/model/controls.ts";

Deno.test("[C-03, B-14, B-18] the configuration in docs/control.md is valid and shows the defaults", async () => {
  const page = await Deno.readTextFile(new URL("../../../docs/control.md", import.meta.url));
  const toml = /```toml\n([\s\S]*?)```/.exec(page)![1]!;
  const { guard, routing } = parseConfig(toml, "docs/control.md");
  assert.deepEqual(guard, { burst: DEFAULT_GUARD.burst, per_hour: DEFAULT_GUARD.perHour });
  assert.equal(routing?.open, DEFAULT_ROUTING.open);
  assert.equal(routing?.together, DEFAULT_ROUTING.together);
  assert.deepEqual(routing?.allow?.[0], ["alpha", "beta"]);
  assert.match(page, new RegExp(`more than ${DEFAULT_GUARD.burst} messages`));

  const refused = (text: string) => {
    try {
      parseConfig(text, "c.toml");
    } catch (error) {
      return String(error);
    }
    return "accepted";
  };
  assert.match(refused("[guard]\nburst = 0\n"), /guard\.burst/);
  assert.match(refused("[guard]\nburts = 5\n"), /unknown key "guard\.burts"/);
  assert.match(refused('[routing]\nallow = [["alpha"]]\n'), /routing\.allow/);
  assert.match(refused('[routing]\nopen = "yes"\n'), /routing\.open/);
});
