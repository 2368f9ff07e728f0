/**
 * The coordination engine alone, for tests: `TAMQ_*` as always, `TEST_REPOS` (name to path, JSON) in
 * place of gita.
 */
import { errorText } from "../../lib/base/errors.ts";
import { loadSettings } from "../../lib/config.ts";
import { runEngine } from "../../lib/coord/engine.ts";
import { FakeRegistry } from "./fake_registry.ts";

try {
  await runEngine({
    settings: await loadSettings(),
    registry: new FakeRegistry(JSON.parse(Deno.env.get("TEST_REPOS") ?? "{}")),
    version: "0.0.0-test",
    isBroker: () => false,
    mode: "foreground",
    json: true,
    level: "debug",
  });
  Deno.exit(0);
} catch (error) {
  console.error(JSON.stringify({ event: "engine.failed", reason: errorText(error) }));
  Deno.exit(1);
}
