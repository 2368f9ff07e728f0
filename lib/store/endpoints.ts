/** Endpoints (tmux servers) that ever attached, and how long their targets are left alone. */
import type { EndpointFacts, EndpointRecord, EndpointStore } from "../model/records.ts";
import type { Database } from "../sqlite/open.ts";

export class Endpoints implements EndpointStore {
  readonly #register;
  readonly #get;
  readonly #seen;
  readonly #disconnected;
  readonly #allDisconnected;
  readonly #backoffUntil;
  readonly #setBackoff;
  readonly #clearBackoff;
  readonly #nextBackoffEnd;
  readonly #clampBackoff;

  constructor(db: Database) {
    this.#register = db.prepare(`INSERT INTO endpoints
      (endpoint_id, generation, session, protocol, capabilities, first_seen_at, last_seen_at)
      VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?6)
      ON CONFLICT (endpoint_id, generation) DO UPDATE SET session = excluded.session,
        protocol = excluded.protocol, capabilities = excluded.capabilities,
        last_seen_at = excluded.last_seen_at
      RETURNING ref`);
    this.#get = db.prepare(`SELECT ref, endpoint_id AS endpointId, generation, session, protocol,
      capabilities, first_seen_at AS firstSeenAt, last_seen_at AS lastSeenAt,
      disconnected_at AS disconnectedAt FROM endpoints WHERE ref = ?`);
    this.#seen = db.prepare(
      "UPDATE endpoints SET last_seen_at = ?, disconnected_at = NULL WHERE ref = ?",
    );
    this.#disconnected = db.prepare(
      "UPDATE endpoints SET last_seen_at = ?1, disconnected_at = ?1 WHERE ref = ?2",
    );
    this.#allDisconnected = db.prepare(
      "UPDATE endpoints SET disconnected_at = ? WHERE disconnected_at IS NULL",
    );
    this.#backoffUntil = db.prepare(
      "SELECT until_at AS at FROM target_backoff WHERE endpoint = ? AND repo = ?",
    );
    this.#setBackoff = db.prepare(`INSERT INTO target_backoff (endpoint, repo, until_at)
      VALUES (?, ?, ?)
      ON CONFLICT (endpoint, repo) DO UPDATE SET until_at = excluded.until_at`);
    this.#clearBackoff = db.prepare("DELETE FROM target_backoff WHERE endpoint = ? AND repo = ?");
    this.#nextBackoffEnd = db.prepare(
      "SELECT min(until_at) AS at FROM target_backoff WHERE until_at > ?",
    );
    this.#clampBackoff = db.prepare(
      "UPDATE target_backoff SET until_at = ?1 WHERE until_at > ?1",
    );
  }

  register(facts: EndpointFacts, at: number): number {
    const { endpointId, generation, session, protocol, capabilities } = facts;
    const row = this.#register.get(
      endpointId,
      generation,
      session,
      protocol,
      JSON.stringify(capabilities),
      at,
    );
    return Number(row!.ref);
  }

  get(ref: number): EndpointRecord | undefined {
    const row = this.#get.get(ref);
    if (row === undefined) return undefined;
    return {
      ...(row as unknown as EndpointRecord),
      capabilities: JSON.parse(String(row.capabilities)),
    };
  }

  seen(ref: number, at: number): void {
    this.#seen.run(at, ref);
  }

  disconnected(ref: number, at: number): void {
    this.#disconnected.run(at, ref);
  }

  allDisconnected(at: number): void {
    this.#allDisconnected.run(at);
  }

  backoffUntil(ref: number, repo: string): number | undefined {
    return optional(this.#backoffUntil.get(ref, repo)?.at);
  }

  setBackoff(ref: number, repo: string, until: number): void {
    this.#setBackoff.run(ref, repo, until);
  }

  clearBackoff(ref: number, repo: string): void {
    this.#clearBackoff.run(ref, repo);
  }

  nextBackoffEnd(now: number): number | undefined {
    return optional(this.#nextBackoffEnd.get(now)?.at);
  }

  clampBackoff(to: number): void {
    this.#clampBackoff.run(to);
  }
}

function optional(value: unknown): number | undefined {
  return typeof value === "number" ? value : undefined;
}
