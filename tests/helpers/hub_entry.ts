/** A State Hub alone, for tests: `TAMQ_*` as always, `TEST_UID` to run as another user, `--tcp`. */
import { systemClock } from "../../lib/base/clock.ts";
import { errorText } from "../../lib/base/errors.ts";
import { createLog } from "../../lib/base/log.ts";
import { loadSettings } from "../../lib/config.ts";
import { runHub } from "../../lib/hub/server.ts";
import { hubSettings } from "../../lib/hub/settings.ts";
import { becomeUser } from "./unprivileged.ts";

const uid = Deno.env.get("TEST_UID");
if (uid !== undefined) becomeUser(Number(uid));
const write = (line: string) => void Deno.stderr.writeSync(new TextEncoder().encode(line));
const log = createLog({ clock: systemClock, level: "debug", json: true, write });
try {
  const hub = hubSettings(await loadSettings());
  const tcpPort = Deno.args.includes("--tcp") ? 0 : undefined;
  await runHub({ hub, version: "0.0.0-test", log, tcpPort });
  Deno.exit(0);
} catch (error) {
  console.error(JSON.stringify({ event: "hub.failed", reason: errorText(error) }));
  Deno.exit(1);
}
