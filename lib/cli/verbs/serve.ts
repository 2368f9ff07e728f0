/** `tamq serve` (L-01). */
import { displaySafe } from "../../base/display.ts";
import type { Level } from "../../base/log.ts";
import { loadSettings } from "../../config.ts";
import { ensureStateDir } from "../../ipc/state_dir.ts";
import type { Verb } from "../command.ts";
import { usageError } from "../errors.ts";
import { VERSION } from "../version.ts";

export interface ServeFlags {
  readonly detach?: boolean;
  readonly quiet?: boolean;
  readonly verbose?: boolean;
  readonly json?: boolean;
  readonly detachedChild?: boolean;
}

const serve: Verb<ServeFlags> = async function (flags) {
  if (flags.quiet && flags.verbose) {
    throw usageError("--quiet and --verbose exclude each other", "give one of them");
  }
  const settings = await loadSettings(this.env);
  const tightened = ensureStateDir(settings.stateDir);
  if (tightened !== undefined) this.err(`tamq: ${displaySafe(tightened)}`);
  if (flags.detach) {
    const { startDetached } = await import("../../service_control.ts");
    const { started, pid, advisory } = await startDetached(settings);
    this.out(started ? `service started (pid ${pid})` : `service already running (pid ${pid})`);
    if (advisory !== undefined) this.err(displaySafe(advisory));
    return;
  }
  const { runService } = await import("../../daemon.ts");
  const { gitaRegistry } = await import("../../gita.ts");
  const level: Level = flags.quiet ? "warn" : flags.verbose ? "debug" : "info";
  await runService({
    settings,
    registry: gitaRegistry(this.env),
    version: VERSION,
    mode: flags.detachedChild ? "detached" : "foreground",
    level,
    json: flags.json,
  });
};
export default serve;
