/**
 * A State Hub alone, for tests: `TAMQ_*` as always, `TEST_UID` to run as another user. Arguments:
 * `--tcp`, `--detached`.
 */
import { errorText } from "../../lib/base/errors.ts";
import { loadSettings } from "../../lib/config.ts";
import { serveHub } from "../../lib/hub/serve.ts";
import { windowOfAncestry } from "../../lib/broker_process.ts";
import { hubSettings } from "../../lib/hub/settings.ts";
import { becomeUser } from "./unprivileged.ts";

const uid = Deno.env.get("TEST_UID");
if (uid !== undefined) becomeUser(Number(uid));
try {
  await serveHub({
    hub: hubSettings(await loadSettings()),
    version: "0.0.0-test",
    mode: Deno.args.includes("--detached") ? "detached" : "foreground",
    level: "debug",
    json: true,
    windowOf: windowOfAncestry,
    tcpPort: Deno.args.includes("--tcp") ? 0 : undefined,
  });
  Deno.exit(0);
} catch (error) {
  console.error(JSON.stringify({ event: "hub.failed", reason: errorText(error) }));
  Deno.exit(1);
}
