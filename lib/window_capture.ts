/**
 * For diagnosis, if the operator asks for it (B-15): what a window observed and what was delivered to
 * it, a JSON object a line, in a file of the operator's alone (0600) that is bounded as logs are.
 */
import { type Clock, rfc3339 } from "./base/clock.ts";
import type { Settings } from "./config.ts";
import type { Provenance } from "./model/message.ts";
import type { DeliverFrame } from "./pty/link.ts";
import type { InjectionOutcome } from "./pty/injector.ts";
import { appendLines } from "./pty/log_file.ts";

export interface WindowCapture {
  /** An addressed text was found; `reason` says why it was not sent. */
  observed(target: string, body: string | null, provenance: Provenance, reason?: string): void;
  /** A delivery was attempted. */
  delivered(frame: DeliverFrame, outcome: InjectionOutcome): void;
}

/** Where {@link windowCapture} writes. */
export function captureFile(settings: Pick<Settings, "capturesDir">, repo: string): string {
  return `${settings.capturesDir}/${encodeURIComponent(repo).slice(0, 200)}.jsonl`;
}

/** Never throws; a file that cannot be written is gone without. */
export function windowCapture(
  wished: boolean,
  settings: Pick<Settings, "capturesDir">,
  repo: string,
  clock: Pick<Clock, "now">,
): WindowCapture {
  if (!wished) return { observed() {}, delivered() {} };
  const append = appendLines(captureFile(settings, repo));
  const write = (event: string, fields: Record<string, unknown>) =>
    append(JSON.stringify({ time: rfc3339(clock.now()), event, ...fields }) + "\n");
  return {
    observed(target, body, provenance, reason) {
      const sent = reason === undefined;
      write("observed", { from: repo, to: target, provenance, sent, reason, body });
    },
    delivered({ message_id, attempt, envelope }, { outcome, reason }) {
      const { sender_repo: from, provenance, body } = envelope;
      write("delivered", {
        message_id,
        attempt,
        from,
        to: repo,
        provenance,
        outcome,
        reason,
        body,
      });
    },
  };
}
