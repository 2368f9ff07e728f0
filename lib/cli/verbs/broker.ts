/** `tamq broker`: what `start` puts into each window (B-01, B-12), and what it becomes (B-17). */
import { TamqError } from "../../base/errors.ts";
import { type BrokerOptions, type Predecessor, runBroker } from "../../broker.ts";
import { loadSettings } from "../../config.ts";
import { gitaRegistry } from "../../gita.ts";
import { takeOver } from "../../handover.ts";
import type { Mode } from "../../model/endpoint.ts";
import { parseTmuxVariable, Tmux } from "../../tmux/client.ts";
import { paneFacts } from "../../tmux/windows.ts";
import type { Verb } from "../command.ts";
import type { CliContext } from "../context.ts";
import { VERSION } from "../version.ts";

type Place = BrokerOptions["tmux"];

export interface BrokerFlags {
  readonly repo: string;
  readonly cwd: string;
  readonly mode: Mode;
  readonly noService?: boolean;
  readonly bare?: boolean;
  readonly profile?: string;
  readonly record?: boolean;
  readonly recordInput?: boolean;
  readonly capture?: boolean;
  readonly handover?: string;
}

const broker: Verb<BrokerFlags, string[]> = async function (flags, ...command) {
  const before = flags.handover === undefined ? undefined : takeOver(flags.handover);
  // A worker depends on it: whatever is missing from here on, its terminal goes on.
  const resumed = before !== undefined;
  return await runBroker({
    repo: flags.repo,
    path: flags.cwd,
    command,
    mode: flags.mode,
    tmux: resumed ? placeLeft(this, before) : await surroundings(this),
    settings: await loadSettings(this.env).catch((error) => {
      if (resumed) return loadSettings(this.env, { ignoreFile: true });
      throw error;
    }),
    service: flags.noService !== true,
    bare: flags.bare === true,
    ...(flags.profile === undefined ? {} : { profile: flags.profile }),
    ...(flags.capture ? { capture: true } : {}),
    ...(flags.recordInput
      ? { record: "input" as const }
      : flags.record
      ? { record: "output" as const }
      : {}),
    registry: gitaRegistry(this.env),
    version: VERSION,
    ...(before === undefined ? {} : { before }),
  });
};
export default broker;

function placeLeft(context: CliContext, { state }: Predecessor): Place {
  if (typeof state === "object") return state.tmux;
  const pane_id = context.env("TMUX_PANE") ?? "";
  return { server_pid: 0, session: "", window_id: "", pane_id };
}

async function surroundings(context: CliContext): Promise<Place> {
  const server = parseTmuxVariable(context.env("TMUX"));
  const pane = context.env("TMUX_PANE");
  if (server !== undefined && pane !== undefined) {
    return await paneFacts(new Tmux({ path: server.path }), pane);
  }
  throw new TamqError("FAILED_PRECONDITION", "not_in_tmux", "tamq broker runs in a tmux pane", {
    hint: "open windows with: tamq --command CMD REPO...",
  });
}
