/** Who may write to whom, who is blocked, what is paused or released (B-11, B-14, B-18). */
import type { BlockedPair, ControlStore, HeldPair, Pair } from "../model/controls.ts";
import type { Database } from "../sqlite/open.ts";

const HELD = "m.state = 'pending' AND m.held = 1";

type Statements = Record<keyof typeof STATEMENTS, ReturnType<Database["prepare"]>>;

export class Controls implements ControlStore {
  readonly #sql: Statements;

  constructor(db: Database) {
    this.#sql = Object.fromEntries(
      Object.entries(STATEMENTS).map(([name, sql]) => [name, db.prepare(sql)]),
    ) as Statements;
  }

  blocked(): BlockedPair[] {
    return this.#sql.blocked.all() as unknown as BlockedPair[];
  }
  isBlocked({ sender, target }: Pair): boolean {
    return this.#sql.isBlocked.get(sender, target) !== undefined;
  }
  refuse({ sender, target }: Pair, at: number): void {
    this.#sql.refuse.run(sender, target, at);
  }
  unblock({ sender, target }: Pair): boolean {
    return this.#sql.unblock.run(sender, target).changes === 1;
  }

  allowed(): Pair[] {
    return this.#sql.allowed.all() as unknown as Pair[];
  }
  isAllowed({ sender, target }: Pair): boolean {
    return this.#sql.isAllowed.get(sender, target) !== undefined;
  }
  allow({ sender, target }: Pair, at: number): void {
    this.#sql.allow.run(sender, target, at);
  }
  disallow({ sender, target }: Pair): boolean {
    return this.#sql.disallow.run(sender, target).changes === 1;
  }
  openedTogether(ref: number, a: string, b: string, at: number): boolean {
    const [first, second] = a < b ? [a, b] : [b, a];
    return this.#sql.openedTogether.run(first, second, ref, at).changes === 1;
  }
  wereTogether(a: string, b: string, refs: readonly (number | null)[] | "any"): boolean {
    const [first, second] = a < b ? [a, b] : [b, a];
    const found = refs === "any"
      ? this.#sql.wereEver.get(first, second)
      : this.#sql.wereTogether.get(first, second, JSON.stringify(refs));
    return found !== undefined;
  }

  held(): HeldPair[] {
    return this.#sql.held.all() as unknown as HeldPair[];
  }
  letGo({ sender, target }: Pair, eligibleAt: number, ref?: number): number {
    return Number(this.#sql.letGo.run(sender, target, eligibleAt, ref ?? null).changes);
  }

  pausedAt(): number | undefined {
    const row = this.#sql.pausedAt.get();
    return row === undefined ? undefined : Number(row.since);
  }
  setPaused(at: number | undefined): void {
    if (at === undefined) this.#sql.resume.run();
    else this.#sql.pause.run(at);
  }
  restartWaits(now: number): void {
    this.#sql.restartWaits.run(now);
  }

  releasedThrough(repo: string): number {
    return Number(this.#sql.releasedThrough.get(repo)?.through ?? 0);
  }
  release(repo: string, eligibleAt: number): number {
    const before = this.releasedThrough(repo);
    const { changes } = this.#sql.restartHeldBack.run(repo, before, eligibleAt);
    this.#sql.release.run(repo);
    return Number(changes);
  }
}

const STATEMENTS = {
  blocked: "SELECT sender, target, since, refused FROM blocked_pairs ORDER BY sender, target",
  isBlocked: "SELECT 1 FROM blocked_pairs WHERE sender = ? AND target = ?",
  refuse: `INSERT INTO blocked_pairs (sender, target, since, refused) VALUES (?, ?, ?, 1)
    ON CONFLICT (sender, target) DO UPDATE SET refused = refused + 1`,
  unblock: "DELETE FROM blocked_pairs WHERE sender = ? AND target = ?",

  allowed: "SELECT sender, target FROM allowed_pairs ORDER BY sender, target",
  isAllowed: "SELECT 1 FROM allowed_pairs WHERE sender = ? AND target = ?",
  allow: `INSERT INTO allowed_pairs (sender, target, at) VALUES (?, ?, ?)
    ON CONFLICT (sender, target) DO NOTHING`,
  disallow: "DELETE FROM allowed_pairs WHERE sender = ? AND target = ?",
  openedTogether: `INSERT INTO opened_pairs (a, b, endpoint, at) VALUES (?, ?, ?, ?)
    ON CONFLICT (a, b, endpoint) DO NOTHING`,
  wereTogether: `SELECT 1 FROM opened_pairs WHERE a = ? AND b = ?
    AND endpoint IN (SELECT value FROM json_each(?)) LIMIT 1`,
  wereEver: "SELECT 1 FROM opened_pairs WHERE a = ? AND b = ? LIMIT 1",

  held: `SELECT m.sender_repo AS sender, m.target_repo AS target, count(*) AS messages
    FROM messages m WHERE ${HELD} GROUP BY m.sender_repo, m.target_repo`,
  // Without a place of their own (an adopted spool) they go with any.
  letGo: `UPDATE messages AS m SET held = 0, eligible_at = ?3
    WHERE ${HELD} AND m.sender_repo = ?1 AND m.target_repo = ?2
    AND (?4 IS NULL OR coalesce(m.source_endpoint, m.endpoint, ?4) = ?4)`,

  pausedAt: "SELECT since FROM pause",
  pause: "INSERT INTO pause (one, since) VALUES (1, ?) ON CONFLICT (one) DO NOTHING",
  resume: "DELETE FROM pause",
  restartWaits: `UPDATE messages SET eligible_at = ?1
    WHERE state = 'pending' AND held = 0 AND next_attempt_at IS NULL AND eligible_at < ?1`,

  releasedThrough: "SELECT through FROM released WHERE repo = ?",
  release: `INSERT INTO released (repo, through)
    SELECT ?1, coalesce(max(seq), 0) FROM messages WHERE true
    ON CONFLICT (repo) DO UPDATE SET through = excluded.through`,
  restartHeldBack: `UPDATE messages SET eligible_at = ?3
    WHERE target_repo = ?1 AND state = 'pending' AND held = 0 AND lease_token IS NULL
    AND seq > ?2`,
} as const;
