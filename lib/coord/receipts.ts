/** Writes receipts: who, what, when and why, and nothing else (K-14). */
import { type Clock, rfc3339 } from "../base/clock.ts";
import { newId } from "../base/ids.ts";
import type { Random } from "../base/random.ts";
import type { PolicyProfile } from "../model/policy.ts";
import { makeReceipt, type Receipt, type ReceiptKind } from "../model/receipt.ts";
import type { LeaseRow, TriggerRow } from "./records.ts";

/** What stands on every receipt and lease (K-13, C-03). */
export interface Rules {
  readonly profile: PolicyProfile;
  readonly configVersion: string;
}

export interface ReceiptSink {
  addReceipt(receipt: Receipt): void;
}

export interface ReceiptOptions {
  readonly sink: ReceiptSink;
  readonly rules: Rules;
  readonly clock: Pick<Clock, "now">;
  readonly random: Random;
}

type Fields = Partial<
  Omit<Receipt, "receipt_id" | "idempotency_key" | "kind" | "status" | "recorded_at">
>;

/** Ids of other programs may have forms that receipts do not carry; such a field is left out. */
const ID = /^[\x21-\x7e]{1,128}$/;
const WORD = /^[a-z][a-z0-9_]{0,63}$/;

export class Receipts {
  readonly #options: ReceiptOptions;

  constructor(options: ReceiptOptions) {
    this.#options = options;
  }

  /** To be called inside the transaction of what it tells of. */
  write(
    kind: ReceiptKind,
    status: string,
    about: { trigger?: TriggerRow; lease?: LeaseRow },
    fields: Fields = {},
  ): void {
    const { sink, rules, clock, random } = this.#options;
    const id = newId(clock, random);
    const { trigger, lease } = about;
    sink.addReceipt(makeReceipt({
      receipt_id: id,
      idempotency_key: id,
      kind,
      status,
      ...(trigger && {
        trigger_id: trigger.triggerId,
        source: trigger.source,
        source_id: clean(trigger.sourceId, ID),
        source_revision: clean(trigger.sourceRevision, ID),
        target_repo: trigger.targetRepo,
        target_agent: clean(trigger.targetAgent, ID),
      }),
      ...(lease && {
        lease_id: lease.leaseId,
        attempt: lease.attempt,
        expires_at: lease.held ? rfc3339(lease.expiresAt) : undefined,
        coordination_endpoint_id: lease.coordEndpointId,
        local_message_id: lease.messageId,
      }),
      policy_profile: lease?.policyProfile ?? rules.profile.name,
      policy_version: lease?.policyVersion ?? rules.profile.version,
      config_version: lease?.configVersion ?? rules.configVersion,
      ...fields,
      reason: clean(fields.reason, WORD),
      recorded_at: rfc3339(clock.now()),
    }));
  }
}

function clean(value: string | null | undefined, form: RegExp): string | undefined {
  return value !== null && value !== undefined && form.test(value) ? value : undefined;
}
