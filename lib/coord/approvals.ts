/** A person's yes to one gate of one trigger (K-04): typed, recorded, and it expires. */
import type { Clock } from "../base/clock.ts";
import { rfc3339 } from "../base/clock.ts";
import { TamqError } from "../base/errors.ts";
import { newId, newToken } from "../base/ids.ts";
import type { Random } from "../base/random.ts";
import type { CoordinationSettings } from "../model/coordination.ts";
import { NEVER_APPROVABLE } from "./gates.ts";
import type { Receipts } from "./receipts.ts";
import type { TriggerRow } from "./records.ts";
import type { CoordStore } from "./store/store.ts";

export interface ApprovalOptions {
  readonly store: CoordStore;
  readonly clock: Clock;
  readonly random: Random;
  readonly receipts: Receipts;
  readonly settings: CoordinationSettings;
}

/** A challenge holds for so long, and once. */
const CHALLENGE_MS = 60_000;
const MOST_CHALLENGES = 64;

export class Approvals {
  readonly #o: ApprovalOptions;
  readonly #challenges = new Map<string, { trigger: string; action: string; until: number }>();

  constructor(options: ApprovalOptions) {
    this.#o = options;
  }

  /** What a person must type. Throws `unknown_trigger`, `not_gated`, `never_approvable`. */
  challenge(triggerId: string, action: string): { challenge: string; trigger: TriggerRow } {
    const trigger = this.#require(triggerId, action);
    const { clock, random } = this.#o;
    if (this.#challenges.size >= MOST_CHALLENGES) {
      this.#challenges.delete(this.#challenges.keys().next().value!);
    }
    const challenge = newToken(random).slice(-6);
    const until = clock.monotonic() + CHALLENGE_MS;
    this.#challenges.set(challenge, { trigger: triggerId, action, until });
    return { challenge, trigger };
  }

  /** Records the approval; the trigger is decided again. Throws also `challenge_wrong`. */
  async approve(triggerId: string, action: string, why: string, challenge: string) {
    const { store, clock, random, receipts, settings } = this.#o;
    const asked = this.#challenges.get(challenge);
    this.#challenges.delete(challenge);
    const matches = asked !== undefined && asked.trigger === triggerId &&
      asked.action === action && clock.monotonic() < asked.until;
    if (!matches) {
      throw new TamqError(
        "PERMISSION_DENIED",
        "challenge_wrong",
        "that was not the word asked for",
        {
          hint: "begin again; it holds for a minute and once",
        },
      );
    }
    return await store.commit(() => {
      const trigger = this.#require(triggerId, action);
      const now = clock.now();
      const approval = {
        approvalId: newId(clock, random),
        triggerId,
        action,
        recordedAt: now,
        expiresAt: now + settings.approvalSeconds * 1000,
      };
      store.journal.addApproval({ ...approval, why });
      store.triggers.update({ ...trigger, state: "waiting", dueAt: 0 });
      receipts.write("approval", "recorded", { trigger }, {
        approval_id: approval.approvalId,
        action_class: action,
        gate: action,
        expires_at: rfc3339(approval.expiresAt),
      });
      return approval;
    });
  }

  #require(triggerId: string, action: string): TriggerRow {
    const trigger = this.#o.store.triggers.get(triggerId);
    if (trigger === undefined) {
      throw new TamqError("NOT_FOUND", "unknown_trigger", `there is no trigger "${triggerId}"`, {
        hint: "see: tamq coord triggers",
      });
    }
    if ((NEVER_APPROVABLE as readonly string[]).includes(action)) {
      throw new TamqError(
        "PERMISSION_DENIED",
        "never_approvable",
        `no approval opens the gate "${action}"`,
        { hint: "mend what it names; then change the task, so that it is decided anew" },
      );
    }
    if (trigger.state !== "gated" || !trigger.gates.includes(action)) {
      throw new TamqError(
        "FAILED_PRECONDITION",
        "not_gated",
        `the gate "${action}" does not stop trigger ${triggerId}`,
        {
          hint: trigger.gates.length > 0
            ? `its gates: ${trigger.gates.join(", ")}`
            : `it is ${trigger.state}: ${trigger.decision}`,
        },
      );
    }
    return trigger;
  }
}
