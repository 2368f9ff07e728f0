/** `tamq start`, also reached as `tamq --command CMD REPO…` (E-05, E-06). */
import type { Mode } from "../../model/endpoint.ts";

export interface StartFlags {
  readonly command: string;
  readonly mode: Mode;
  readonly tmuxSocket?: string;
  readonly noService?: boolean;
}
