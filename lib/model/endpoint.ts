/** Endpoints: one tmux server each (E-01). */

/** Wire name of an endpoint: `tmux-amq-<PID of the tmux server>`. */
export function endpointId(tmuxServerPid: number): string {
  return `tmux-amq-${tmuxServerPid}`;
}

/** How an endpoint's window takes messages (B-11). */
export const MODES = ["trigger", "draft", "hold"] as const;
export type Mode = typeof MODES[number];
