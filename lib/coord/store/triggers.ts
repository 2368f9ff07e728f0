/** Triggers and the sources that they come from. */
import type { TriggerSource, WorkerTrigger } from "../../model/trigger.ts";
import type { Database } from "../../sqlite/open.ts";
import type { SourceRow, TriggerRow, TriggerState } from "../records.ts";

type Row = Record<string, unknown>;

function toTrigger(row: Row): TriggerRow {
  return {
    triggerId: row.trigger_id as string,
    source: row.source as TriggerSource,
    sourceId: row.source_id as string,
    sourceRevision: row.source_revision as string,
    targetRepo: row.target_repo as string,
    targetAgent: row.target_agent as string | null,
    reason: row.reason as TriggerRow["reason"],
    observedAt: row.observed_at as number,
    state: row.state as TriggerState,
    decision: row.decision as string,
    gates: JSON.parse(row.gates as string),
    gatedAttempts: row.gated_attempts as number,
    attempts: row.attempts as number,
    dueAt: row.due_at as number,
    priority: row.priority as number,
  };
}

export class Triggers {
  readonly #insert;
  readonly #find;
  readonly #get;
  readonly #due;
  readonly #nextDue;
  readonly #wakeSource;
  readonly #ofSource;
  readonly #list;
  readonly #update;
  readonly #lookAgain;
  readonly #clampDue;
  readonly #reopen;
  readonly #waitFor;
  readonly #anyOpen;
  readonly #gatedRepos;
  readonly #decideAgain;
  readonly #counts;
  readonly #source;
  readonly #putSource;
  readonly #clearSources;

  constructor(db: Database) {
    this.#insert = db.prepare(`INSERT INTO triggers (trigger_id, source, source_id,
        source_revision, target_repo, target_agent, reason, observed_at, state, decision, gates,
        gated_attempts, attempts, due_at, priority)
      VALUES (?, ?, ?, ?, ?, ?, ?, ?, 'waiting', 'observed', '[]', 0, 0, 0, ?)
      ON CONFLICT (source, source_id, source_revision, target_repo) DO NOTHING`);
    this.#find = db.prepare(`SELECT * FROM triggers
      WHERE source = ? AND source_id = ? AND source_revision = ? AND target_repo = ?`);
    this.#get = db.prepare("SELECT * FROM triggers WHERE trigger_id = ?");
    // Where somebody is at work nobody else is woken: such rows would only be in the way.
    const FREE = "target_repo NOT IN (SELECT target_repo FROM leases WHERE held = 1)";
    this.#due = db.prepare(`SELECT * FROM triggers WHERE state = 'waiting' AND due_at <= ?
      AND (decision = 'observed' OR ${FREE}) ORDER BY priority, seq LIMIT ?`);
    this.#nextDue = db.prepare(`SELECT min(due_at) AS at FROM triggers
      WHERE state = 'waiting' AND ${FREE}`);
    this.#wakeSource = db.prepare(`UPDATE triggers SET priority = ?,
        due_at = CASE WHEN attempts = 0 OR due_at = ? THEN 0 ELSE due_at END,
        state = CASE state WHEN 'gated' THEN 'waiting' ELSE state END
      WHERE source = ? AND source_id = ? AND state IN ('waiting', 'gated')`);
    this.#ofSource = db.prepare("SELECT * FROM triggers WHERE source_id = ? ORDER BY seq DESC");
    this.#list = db.prepare(`SELECT * FROM triggers WHERE (? IS NULL OR state = ?)
        AND (? IS NULL OR target_repo = ?) ORDER BY seq DESC LIMIT ?`);
    this.#update = db.prepare(`UPDATE triggers SET state = ?, decision = ?, gates = ?,
        gated_attempts = ?, attempts = ?, due_at = ? WHERE trigger_id = ?`);
    this.#clampDue = db.prepare(
      "UPDATE triggers SET due_at = ? WHERE state = 'waiting' AND due_at > ? AND due_at < ?",
    );
    this.#lookAgain = db.prepare(
      "UPDATE triggers SET due_at = 0 WHERE state = 'waiting' AND decision = ?",
    );
    this.#waitFor = db.prepare(
      "SELECT 1 FROM triggers WHERE state = 'waiting' AND decision = ? LIMIT 1",
    );
    this.#anyOpen = db.prepare(
      "SELECT 1 FROM triggers WHERE state IN ('waiting', 'gated', 'leased') LIMIT 1",
    );
    this.#reopen = db.prepare(`UPDATE triggers SET state = 'waiting', due_at = 0
      WHERE trigger_id = ? AND state = 'done' AND decision IN ('superseded', 'source_gone')`);
    this.#gatedRepos = db.prepare(`SELECT DISTINCT target_repo FROM triggers
      WHERE state = 'gated' AND decision IN (SELECT value FROM json_each(?))`);
    this.#decideAgain = db.prepare(`UPDATE triggers SET state = 'waiting', due_at = 0
      WHERE state = 'gated' AND target_repo = ? AND decision IN (SELECT value FROM json_each(?))`);
    this.#counts = db.prepare("SELECT state, count(*) AS n FROM triggers GROUP BY state");
    this.#source = db.prepare("SELECT * FROM sources WHERE source = ? AND source_id = ?");
    this.#putSource = db.prepare(`INSERT INTO sources (source, source_id, revision, subject,
        waits_for, priority) VALUES (?, ?, ?, ?, ?, ?)
      ON CONFLICT (source, source_id) DO UPDATE SET revision = excluded.revision,
        subject = excluded.subject, waits_for = excluded.waits_for, priority = excluded.priority`);
    this.#clearSources = db.prepare("UPDATE sources SET revision = 1");
  }

  /** False when it was there already (K-02). */
  add(trigger: WorkerTrigger, observedAt: number, priority: number): boolean {
    return this.#insert.run(
      trigger.id,
      trigger.source,
      trigger.source_id,
      trigger.source_revision,
      trigger.target_repo,
      trigger.target_agent ?? null,
      trigger.reason,
      observedAt,
      priority,
    ).changes === 1;
  }

  byKey(trigger: WorkerTrigger): TriggerRow | undefined {
    const row = this.#find.get(
      trigger.source,
      trigger.source_id,
      trigger.source_revision,
      trigger.target_repo,
    );
    return row && toTrigger(row);
  }

  get(id: string): TriggerRow | undefined {
    const row = this.#get.get(id);
    return row && toTrigger(row);
  }

  /** Those to look at now, most urgent first. */
  due(now: number, limit: number): TriggerRow[] {
    return this.#due.all(now, limit).map(toTrigger);
  }

  /** When the next one is to be looked at; undefined: none waits for time. */
  nextDue(): number | undefined {
    const at = this.#nextDue.get()!.at as number | null;
    return at === null || at >= NEVER ? undefined : at;
  }

  /** Something about the source changed: its open triggers are looked at again. */
  sourceChanged(source: TriggerSource, id: string, priority: number): void {
    this.#wakeSource.run(priority, NEVER, source, id);
  }

  /** Every trigger of that source id, newest first. */
  ofSource(sourceId: string): TriggerRow[] {
    return this.#ofSource.all(sourceId).map(toTrigger);
  }

  list(filter: { state?: string; repo?: string; limit: number }): TriggerRow[] {
    const { state = null, repo = null, limit } = filter;
    return this.#list.all(state, state, repo, repo, limit).map(toTrigger);
  }

  update(row: TriggerRow): void {
    this.#update.run(
      row.state,
      row.decision,
      JSON.stringify(row.gates),
      row.gatedAttempts,
      row.attempts,
      row.dueAt,
      row.triggerId,
    );
  }

  /** Those that wait for one of these reasons are looked at again. */
  lookAgain(decisions: readonly string[]): void {
    for (const decision of decisions) this.#lookAgain.run(decision);
  }

  /** Whether any waits for that reason. */
  waitFor(decision: string): boolean {
    return this.#waitFor.get(decision) !== undefined;
  }

  /** Whether there is anything that windows or registry could matter to. */
  anyOpen(): boolean {
    return this.#anyOpen.get() !== undefined;
  }

  /** Its source says again what it once took back: it counts as it did before. */
  reopen(triggerId: string): void {
    this.#reopen.run(triggerId);
  }

  /** Repositories of triggers that are gated for one of these reasons. */
  gatedRepos(reasons: readonly string[]): string[] {
    return this.#gatedRepos.all(JSON.stringify(reasons)).map((row) => row.target_repo as string);
  }

  /** Those of `repo` that are gated for one of these reasons are decided anew. */
  decideAgain(repo: string, reasons: readonly string[]): void {
    this.#decideAgain.run(repo, JSON.stringify(reasons));
  }

  /** No pause lasts longer than the longest one, whatever the wall clock did since it was set. */
  clampDue(to: number, latest: number): void {
    this.#clampDue.run(to, latest, NEVER);
  }

  counts(): Record<string, number> {
    return Object.fromEntries(
      this.#counts.all().map((row) => [row.state as string, row.n as number]),
    );
  }

  source(source: TriggerSource, id: string): SourceRow | undefined {
    const row = this.#source.get(source, id);
    return row && {
      revision: row.revision as number,
      subject: JSON.parse(row.subject as string),
      waitsFor: JSON.parse(row.waits_for as string),
      priority: row.priority as number,
    };
  }

  putSource(source: TriggerSource, id: string, row: SourceRow): void {
    this.#putSource.run(
      source,
      id,
      row.revision,
      JSON.stringify(row.subject),
      JSON.stringify(row.waitsFor),
      row.priority,
    );
  }

  /** The hub begins anew: revisions seen so far say nothing about those that come. */
  forgetRevisions(): void {
    this.#clearSources.run();
  }
}

/** `due_at` of what waits for a change and not for time. */
export const NEVER = Number.MAX_SAFE_INTEGER;
