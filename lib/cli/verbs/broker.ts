/** `tamq broker`: what `start` puts into each window (B-01). */
import type { Mode } from "../../model/endpoint.ts";

export interface BrokerFlags {
  readonly repo: string;
  readonly cwd: string;
  readonly mode: Mode;
  readonly noService?: boolean;
}
