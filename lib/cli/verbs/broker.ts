/** `tamq broker`: what `start` puts into each window (B-01, B-12). */
import { TamqError } from "../../base/errors.ts";
import { runBroker } from "../../broker.ts";
import { loadSettings } from "../../config.ts";
import { gitaRegistry } from "../../gita.ts";
import type { Mode } from "../../model/endpoint.ts";
import { parseTmuxVariable, Tmux } from "../../tmux/client.ts";
import { paneFacts } from "../../tmux/windows.ts";
import type { Verb } from "../command.ts";

export interface BrokerFlags {
  readonly repo: string;
  readonly cwd: string;
  readonly mode: Mode;
  readonly noService?: boolean;
  readonly bare?: boolean;
  readonly profile?: string;
  readonly record?: boolean;
  readonly recordInput?: boolean;
}

const broker: Verb<BrokerFlags, string[]> = async function (flags, ...command) {
  const server = parseTmuxVariable(this.env("TMUX"));
  const pane = this.env("TMUX_PANE");
  if (server === undefined || pane === undefined) {
    throw new TamqError("FAILED_PRECONDITION", "not_in_tmux", "tamq broker runs in a tmux pane", {
      hint: "open windows with: tamq --command CMD REPO...",
    });
  }
  return await runBroker({
    repo: flags.repo,
    path: flags.cwd,
    command,
    mode: flags.mode,
    tmux: await paneFacts(new Tmux({ path: server.path }), pane),
    settings: await loadSettings(this.env),
    service: flags.noService !== true,
    bare: flags.bare === true,
    ...(flags.profile === undefined ? {} : { profile: flags.profile }),
    ...(flags.recordInput
      ? { record: "input" as const }
      : flags.record
      ? { record: "output" as const }
      : {}),
    registry: gitaRegistry(this.env),
  });
};
export default broker;
