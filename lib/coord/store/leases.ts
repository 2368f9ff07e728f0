/** Rows of leases; which changes are allowed is decided by `lib/coord/leases.ts`. */
import type { LeaseState } from "../../model/coord_lease.ts";
import type { Database } from "../../sqlite/open.ts";
import type { LeaseRow } from "../records.ts";

type Row = Record<string, unknown>;

function toLease(row: Row): LeaseRow {
  return {
    leaseId: row.lease_id as string,
    triggerId: row.trigger_id as string,
    fencingToken: row.fencing_token as number,
    targetRepo: row.target_repo as string,
    targetAgent: row.target_agent as string | null,
    state: row.state as LeaseState,
    held: row.held === 1,
    attempt: row.attempt as number,
    acquiredAt: row.acquired_at as number,
    expiresAt: row.expires_at as number,
    lastCheckpointAt: row.last_checkpoint_at as number | null,
    policyProfile: row.policy_profile as string,
    policyVersion: row.policy_version as string,
    configVersion: row.config_version as string,
    prompt: row.prompt as string,
    resumed: row.resumed === 1,
    endpointId: row.endpoint_id as string | null,
    coordEndpointId: row.coord_endpoint_id as string | null,
    messageId: row.message_id as string | null,
    messageState: row.message_state as string | null,
    shownAt: row.shown_at as number | null,
  };
}

export type NewLease = Omit<
  LeaseRow,
  | "state"
  | "held"
  | "lastCheckpointAt"
  | "endpointId"
  | "coordEndpointId"
  | "messageId"
  | "messageState"
  | "shownAt"
>;

export class LeaseRows {
  readonly #fence;
  readonly #insert;
  readonly #get;
  readonly #held;
  readonly #heldOf;
  readonly #ofTrigger;
  readonly #move;
  readonly #sent;
  readonly #message;
  readonly #extend;
  readonly #list;
  readonly #known;

  constructor(db: Database) {
    this.#fence = db.prepare("UPDATE engine SET fencing = fencing + 1 RETURNING fencing");
    this.#insert = db.prepare(`INSERT INTO leases (lease_id, trigger_id, fencing_token,
        target_repo, target_agent, state, held, attempt, acquired_at, expires_at, policy_profile,
        policy_version, config_version, prompt, resumed)
      VALUES (?, ?, ?, ?, ?, 'offered', 1, ?, ?, ?, ?, ?, ?, ?, ?)`);
    this.#get = db.prepare("SELECT * FROM leases WHERE lease_id = ?");
    this.#held = db.prepare("SELECT * FROM leases WHERE held = 1 ORDER BY seq");
    this.#heldOf = db.prepare("SELECT * FROM leases WHERE held = 1 AND trigger_id = ?");
    this.#ofTrigger = db.prepare("SELECT * FROM leases WHERE trigger_id = ? ORDER BY seq");
    // The exact term, in the very state that was read: a lost race changes no row.
    this.#move = db.prepare(`UPDATE leases SET state = ?, held = ?, expires_at = ?,
        last_checkpoint_at = ?
      WHERE lease_id = ? AND fencing_token = ? AND held = ? AND state = ? AND expires_at = ?`);
    this.#sent = db.prepare(`UPDATE leases SET endpoint_id = ?, coord_endpoint_id = ?,
        message_id = ?, message_state = ? WHERE lease_id = ?`);
    this.#message = db.prepare(
      "UPDATE leases SET message_state = ?, shown_at = ? WHERE lease_id = ?",
    );
    this.#extend = db.prepare(`UPDATE leases SET expires_at = ?,
        shown_at = CASE WHEN shown_at IS NULL THEN NULL ELSE ? END WHERE held = 1`);
    this.#list = db.prepare(`SELECT * FROM leases WHERE (? = 0 OR held = 1)
      ORDER BY seq DESC LIMIT ?`);
    this.#known = db.prepare("SELECT 1 FROM leases WHERE lease_id = ?");
  }

  nextFencingToken(): number {
    return this.#fence.get()!.fencing as number;
  }

  insert(row: NewLease): void {
    this.#insert.run(
      row.leaseId,
      row.triggerId,
      row.fencingToken,
      row.targetRepo,
      row.targetAgent,
      row.attempt,
      row.acquiredAt,
      row.expiresAt,
      row.policyProfile,
      row.policyVersion,
      row.configVersion,
      row.prompt,
      row.resumed ? 1 : 0,
    );
  }

  get(id: string): LeaseRow | undefined {
    const row = this.#get.get(id);
    return row && toLease(row);
  }

  /** Every held one, oldest first. */
  held(): LeaseRow[] {
    return this.#held.all().map(toLease);
  }

  heldOf(triggerId: string): LeaseRow | undefined {
    const row = this.#heldOf.get(triggerId);
    return row && toLease(row);
  }

  ofTrigger(triggerId: string): LeaseRow[] {
    return this.#ofTrigger.all(triggerId).map(toLease);
  }

  knows(leaseId: string): boolean {
    return this.#known.get(leaseId) !== undefined;
  }

  /** True when exactly that term was changed. */
  move(before: LeaseRow, after: LeaseRow): boolean {
    return this.#move.run(
      after.state,
      after.held ? 1 : 0,
      after.expiresAt,
      after.lastCheckpointAt,
      before.leaseId,
      before.fencingToken,
      before.held ? 1 : 0,
      before.state,
      before.expiresAt,
    ).changes === 1;
  }

  sent(
    leaseId: string,
    to: { endpointId: string; coordEndpointId: string; messageId: string; state: string },
  ): void {
    this.#sent.run(to.endpointId, to.coordEndpointId, to.messageId, to.state, leaseId);
  }

  message(leaseId: string, state: string, shownAt: number | null): void {
    this.#message.run(state, shownAt, leaseId);
  }

  /** Gives every held lease a full term from now on, and shown wakes their whole time. */
  startAnew(expiresAt: number, shownAt: number): void {
    this.#extend.run(expiresAt, shownAt);
  }

  list(heldOnly: boolean, limit: number): LeaseRow[] {
    return this.#list.all(heldOnly ? 1 : 0, limit).map(toLease);
  }
}
