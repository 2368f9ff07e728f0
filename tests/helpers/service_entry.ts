/**
 * The service alone, for tests: `TAMQ_*` as always, `TEST_REPOS` (name to path, JSON) in place of
 * gita, `TEST_UID` to run as another user, `TEST_MAX_BATCH` for the size of commits. Argument: `foreground` or `detached`.
 */
import { loadSettings } from "../../lib/config.ts";
import { errorText } from "../../lib/base/errors.ts";
import { runService } from "../../lib/daemon.ts";
import { FakeRegistry } from "./fake_registry.ts";
import { becomeUser } from "./unprivileged.ts";

const maxBatch = Number(Deno.env.get("TEST_MAX_BATCH")) || undefined;
const uid = Deno.env.get("TEST_UID");
if (uid !== undefined) becomeUser(Number(uid));
try {
  await runService({
    settings: await loadSettings(),
    registry: new FakeRegistry(JSON.parse(Deno.env.get("TEST_REPOS") ?? "{}")),
    version: "0.0.0-test",
    mode: Deno.args[0] === "detached" ? "detached" : "foreground",
    maxBatch,
    json: true,
    level: "debug",
  });
  Deno.exit(0);
} catch (error) {
  console.error(JSON.stringify({ event: "service.failed", reason: errorText(error) }));
  Deno.exit(1);
}
