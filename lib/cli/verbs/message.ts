/** `tamq message` (T-17); with the service stopped, from the database itself. */
import { TamqError } from "../../base/errors.ts";
import { loadSettings } from "../../config.ts";
import type { ColorFlag } from "../colour.ts";
import type { Verb } from "../command.ts";
import type { CliContext } from "../context.ts";
import { late } from "../late.ts";
import { lookOf } from "../layout.ts";
import { messageDetails } from "../render.ts";
import { ask, type JsonFlag, messageIdOf } from "./service.ts";

export type MessageFlags = JsonFlag & ColorFlag;

const message: Verb<MessageFlags, [string]> = async function ({ json, color }, id) {
  const answer = await fromService(this, id).catch(async (error) => {
    const down = error instanceof TamqError && error.reason === "service_unavailable";
    const stored = down ? await fromDatabase(this, id) : undefined;
    if (stored === undefined) throw error;
    return stored;
  });
  if (json) return this.out(JSON.stringify(answer));
  const look = lookOf(this, { color });
  this.out(messageDetails(answer.message, answer.attempts, this.clock.now(), look));
};
export default message;

async function fromService(context: CliContext, id: string) {
  return await ask(context, "message", { message_id: await messageIdOf(context, id) });
}

async function fromDatabase(context: CliContext, id: string) {
  const { database, busyTimeoutMs } = await loadSettings(context.env);
  const { openForReading } = await late("store/store");
  const { readHistory, readMessage } = await late("store/history");
  const { wholeId } = await late("cli/message_ids");
  let db: ReturnType<typeof openForReading>;
  try {
    db = openForReading(database, { busyTimeoutMs });
  } catch {
    return undefined; // that the service does not answer is the failure to report
  }
  try {
    return readMessage(db, await wholeId(id, (filters) => readHistory(db, filters)));
  } finally {
    db.close();
  }
}
