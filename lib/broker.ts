/** Composition root of one window: the broker of one worker's terminal (B-01 to B-16). */
import type { Settings } from "./config.ts";
import type { Mode } from "./model/endpoint.ts";
import type { Registry } from "./model/ports.ts";

export interface BrokerOptions {
  readonly repo: string;
  /** Registered path of the repository; the worker starts there. */
  readonly path: string;
  readonly command: readonly string[];
  readonly mode: Mode;
  readonly tmux: {
    readonly server_pid: number;
    readonly session: string;
    readonly window_id: string;
    readonly pane_id: string;
  };
  readonly settings: Settings;
  /** False: no messaging at all, a pure relay with a visible warning (E-06). */
  readonly service: boolean;
  readonly registry: Registry;
}

/**
 * Runs the command on a terminal of its own until it ends; returns its exit status (128 + signal
 * when one ended it). Throws `command_not_found`, `command_not_executable`, `directory_missing`.
 */
export function runBroker(_options: BrokerOptions): Promise<number> {
  throw new Error("under construction");
}
