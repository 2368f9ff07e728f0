/** `tamq serve` (L-01). */
import { displaySafe } from "../../base/display.ts";
import { loadSettings } from "../../config.ts";
import { ensureStateDir } from "../../ipc/state_dir.ts";
import { orwellSink } from "../../ipc/orwell.ts";
import type { Verb } from "../command.ts";
import {
  childOptions,
  levelOf,
  orwellProfile,
  refuseUnless,
  type ServiceFlags,
} from "../serve_flags.ts";
import { VERSION } from "../version.ts";

const serve: Verb<ServiceFlags> = async function (flags) {
  const level = levelOf(flags);
  const settings = await loadSettings(this.env);
  const tightened = ensureStateDir(settings.stateDir);
  if (tightened !== undefined) this.err(`tamq: ${displaySafe(tightened)}`);
  const orwell = orwellProfile(this, flags, settings, orwellSink(settings.stateDir));
  if (flags.detach) {
    const { startDetached } = await import("../../service_control.ts");
    const { started, pid, advisory } = await startDetached(settings, {
      options: childOptions(flags),
    });
    refuseUnless(started, flags, "tamq stop");
    this.out(started ? `service started (pid ${pid})` : `service already running (pid ${pid})`);
    if (advisory !== undefined) this.err(displaySafe(advisory));
    return;
  }
  const { runService } = await import("../../daemon.ts");
  const { gitaRegistry } = await import("../../gita.ts");
  await runService({
    settings,
    registry: gitaRegistry(this.env),
    version: VERSION,
    mode: flags.detachedChild ? "detached" : "foreground",
    level,
    json: flags.json,
    orwell,
  });
};
export default serve;
