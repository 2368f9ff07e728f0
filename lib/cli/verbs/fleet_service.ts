/** `tamq fleet dispatcher|agent`. */
import { loadSettings } from "../../config.ts";
import { runAgent } from "../../fleet/agent/process.ts";
import { runDispatcher } from "../../fleet/dispatcher/process.ts";
import type { Verb } from "../command.ts";
import { levelOf, type ServiceFlags } from "../serve_flags.ts";
import { VERSION } from "../version.ts";

type LogFlags = Pick<ServiceFlags, "quiet" | "verbose" | "json">;

export interface DispatcherFlags extends LogFlags {
  readonly listen?: string;
  readonly tls?: string;
}

export interface AgentFlags extends DispatcherFlags {
  readonly dispatcher?: string;
  readonly cell?: string;
}

export const dispatcher: Verb<DispatcherFlags> = async function (flags) {
  const level = levelOf(flags);
  const settings = await loadSettings(this.env);
  await runDispatcher({
    settings,
    version: VERSION,
    listen: flags.listen ?? "127.0.0.1:7443",
    tls: flags.tls ?? `${settings.stateDir}/fleet/tls/dispatcher`,
    level,
    json: flags.json,
  });
};

export const agent: Verb<AgentFlags> = async function (flags) {
  const level = levelOf(flags);
  const settings = await loadSettings(this.env);
  await runAgent({
    settings,
    version: VERSION,
    dispatcher: flags.dispatcher ?? "127.0.0.1:7443",
    cell: flags.cell ?? "default",
    listen: flags.listen ?? "127.0.0.1:7444",
    tls: flags.tls ?? `${settings.stateDir}/fleet/tls/agent`,
    level,
    json: flags.json,
  });
};
