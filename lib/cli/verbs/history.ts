/** `tamq history`. */
import type { MessageState } from "../../model/message.ts";

export interface HistoryFlags {
  readonly repo?: string;
  readonly state?: MessageState;
  readonly endpoint?: string;
  readonly correlation?: string;
  readonly since?: string;
  readonly until?: string;
  readonly limit?: number;
  readonly reverse?: boolean;
  readonly json?: boolean;
}
