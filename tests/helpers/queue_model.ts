/** What the queue should do, said a second time and simply: no database, no timers, no tokens. */

export const REPOS = ["beta", "gamma"] as const;
export type Repo = typeof REPOS[number];

export interface ModelMessage {
  readonly repo: Repo;
  readonly key: number;
  readonly body: string;
  state: "pending" | "awaiting_ack" | "injected" | "acknowledged" | "failed";
  attempts: number;
  /** Attempts over all rounds. */
  deliveries: number;
  reason: string | null;
  /** Not before; 0 for at once. */
  next: number;
  /** Of which run of the tmux server its holder was. */
  lease: { expires: number; serial: number; run: number } | undefined;
  ackDeadline: number | undefined;
  /** The run of the tmux server whose window alone may have it; undefined for any. */
  bound: number | undefined;
  /** Wall time. */
  readonly createdAt: number;
  /** Nothing is left of it but its key. */
  purged: boolean;
}

/** What to purge: each that is given chooses. */
export interface ModelPurge {
  readonly before?: number;
  readonly repo?: Repo;
  readonly state?: ModelMessage["state"];
  /** Whatever can go. */
  readonly all?: boolean;
}

export interface ModelWindow {
  open: boolean;
  silent: boolean;
  /** Serial of the delivery its broker has not settled. */
  outstanding: { serial: number; adopted: boolean } | undefined;
}

export interface ModelPolicy {
  readonly acknowledged: boolean;
  readonly maxAttempts: number;
  readonly backoff: readonly number[];
  readonly lease: number;
  readonly ack: number;
}

export class QueueModel {
  now: number;
  /** Runs of the tmux server so far; all windows are in the last one. */
  run = 0;
  /** Names of the endpoints of all runs: a pid may be given again. */
  readonly names: string[];
  readonly messages: ModelMessage[] = [];
  readonly windows = new Map<Repo, ModelWindow>();
  /** By run and repository. */
  readonly quietUntil = new Map<string, number>();
  /** Serial of the last delivery to each repository. */
  readonly lastSerial = new Map<Repo, number>();
  /** Indices of the messages handed over, in order. */
  readonly handed: number[] = [];
  #serial = 0;

  constructor(readonly policy: ModelPolicy, now: number, name: string) {
    this.now = now;
    this.names = [name];
  }

  /** `here`: it names the endpoint of the last run. */
  send(
    { repo, key, body, here }: { repo: Repo; key: number; body: string; here: boolean },
    createdAt: number,
  ): "new" | "same" | "idempotency_conflict" | "endpoint_unavailable" {
    const known = this.messages.find((message) => message.key === key);
    const open = this.windows.has(repo);
    if (known !== undefined) {
      if (known.repo !== repo || known.body !== body) return "idempotency_conflict";
      if (!here) return "same";
      if (known.bound === undefined) return "idempotency_conflict";
      if (open && known.bound === this.run) return "same";
      if (!open && this.names[known.bound] === this.names[this.run]) return "same";
      // Every run but the last has ended: the message may go where the window is now.
      if (!open) return "endpoint_unavailable";
      if (["pending", "awaiting_ack", "failed"].includes(known.state) && !known.purged) {
        known.bound = this.run;
      }
      this.#dispatch(repo);
      return "same";
    }
    if (here && !open) return "endpoint_unavailable";
    this.messages.push({
      repo,
      key,
      body,
      state: "pending",
      attempts: 0,
      deliveries: 0,
      reason: null,
      next: 0,
      lease: undefined,
      ackDeadline: undefined,
      bound: here ? this.run : undefined,
      createdAt,
      purged: false,
    });
    this.#dispatch(repo);
    return "new";
  }

  gate(repo: Repo, open: boolean): void {
    const window = this.windows.get(repo)!;
    window.silent = false;
    window.open = open;
    this.#dispatch(repo);
  }

  /** Settles the last delivery to `repo`; false when its lease is over. */
  settle(repo: Repo, outcome: string, scope: "target" | "message"): boolean {
    const window = this.windows.get(repo)!;
    const serial = this.lastSerial.get(repo)!;
    window.silent = false;
    if (window.outstanding?.serial === serial) window.outstanding = undefined;
    const accepted = this.#holds(serial) && this.#end(serial, outcome, scope);
    this.#dispatch(repo);
    return accepted;
  }

  ack(index: number): void {
    const message = this.messages[index]!;
    const window = this.windows.get(message.repo);
    const held = window?.outstanding;
    // Its broker may never have seen it and so never settles it.
    if (held?.adopted && held.serial === message.lease?.serial) window!.outstanding = undefined;
    message.state = "acknowledged";
    message.lease = undefined;
    message.ackDeadline = undefined;
    message.next = 0;
    this.#dispatch(message.repo);
  }

  retry(index: number): boolean {
    const message = this.messages[index]!;
    if (message.state !== "failed") return false;
    message.state = "pending";
    message.attempts = 0;
    this.#dispatch(message.repo);
    return true;
  }

  cancel(index: number): boolean {
    const message = this.messages[index]!;
    if (message.state !== "pending" || message.lease !== undefined) return false;
    message.state = "failed";
    message.reason = "cancelled";
    message.next = 0;
    return true;
  }

  /** How many are gone. */
  purge({ before = -Infinity, repo, state, all = false }: ModelPurge): number {
    const chosen = this.messages.filter((message) =>
      !message.purged && ["injected", "acknowledged", "failed"].includes(message.state) &&
      (all || message.createdAt < before || message.repo === repo || message.state === state)
    );
    for (const message of chosen) message.purged = true;
    return chosen.length;
  }

  /** The tmux server ends with all its windows, and another one starts. */
  nextRun(name: string): void {
    for (const repo of [...this.windows.keys()]) this.detach(repo, true);
    this.run = this.names.push(name) - 1;
  }

  /** `died`: its process is gone as well. */
  detach(repo: Repo, died: boolean): void {
    const window = this.windows.get(repo)!;
    this.windows.delete(repo);
    if (died && window.outstanding !== undefined) {
      this.#end(window.outstanding.serial, "broker_lost", "target");
    }
  }

  /** `report`: it brings the outcome of its last delivery. */
  attach(repo: Repo, open: boolean, report: boolean): void {
    const serial = this.lastSerial.get(repo)!;
    if (report && this.#holds(serial)) this.#end(serial, "written", "target");
    const held = this.messages.find((message) =>
      message.repo === repo && message.lease?.run === this.run
    );
    this.windows.set(repo, {
      open,
      silent: false,
      outstanding: held && { serial: held.lease!.serial, adopted: true },
    });
    this.#dispatch(repo);
  }

  /** A new service whose wall clock reads `now`. */
  restart(now: number): void {
    this.now = now;
    this.windows.clear();
    const furthest = now + Math.max(...this.policy.backoff);
    for (const message of this.messages) {
      message.next = Math.min(message.next, furthest);
      if (message.lease) {
        const { expires } = message.lease;
        message.lease.expires = Math.max(now + 5000, Math.min(expires, now + this.policy.lease));
      }
      if (message.ackDeadline !== undefined) {
        message.ackDeadline = Math.min(message.ackDeadline, now + this.policy.ack);
      }
    }
    for (const [target, until] of this.quietUntil) {
      this.quietUntil.set(target, Math.min(until, furthest));
    }
    // Of those that are to come back, and of nobody else.
    for (const { lease } of this.messages) {
      if (lease !== undefined && lease.run < this.run) {
        this.#end(lease.serial, "broker_lost", "target");
      }
    }
  }

  advance(ms: number): void {
    this.now += ms;
    for (const message of this.messages) {
      const { lease } = message;
      if (lease === undefined) continue;
      // A holder that left alive and has ended since is missed at the next look for it.
      const lost = lease.run < this.run;
      if (!lost && lease.expires > this.now) continue;
      this.#end(lease.serial, lost ? "broker_lost" : "lease_expired", "target");
      const window = this.windows.get(message.repo);
      if (window?.outstanding?.serial !== lease.serial) continue;
      window.silent = !window.outstanding.adopted;
      window.outstanding = undefined;
    }
    for (const message of this.messages) {
      if (message.ackDeadline === undefined || message.ackDeadline > this.now) continue;
      message.ackDeadline = undefined;
      message.reason = "ack_timeout";
      message.state = message.attempts >= this.policy.maxAttempts ? "failed" : "pending";
    }
    for (const repo of REPOS) this.#dispatch(repo);
  }

  /** Whether that lease is one of the windows that are open now. */
  #holds(serial: number): boolean {
    return this.messages.some(({ lease }) => lease?.serial === serial && lease.run === this.run);
  }

  #end(serial: number, outcome: string, scope: "target" | "message"): boolean {
    const message = this.messages.find((candidate) => candidate.lease?.serial === serial);
    if (message === undefined) return false;
    const target = `${message.lease!.run} ${message.repo}`;
    message.lease = undefined;
    if (outcome === "written") {
      this.quietUntil.delete(target);
      message.state = this.policy.acknowledged ? "awaiting_ack" : "injected";
      if (this.policy.acknowledged) message.ackDeadline = this.now + this.policy.ack;
      return true;
    }
    const { backoff } = this.policy;
    const until = this.now + backoff[Math.min(message.attempts, backoff.length) - 1]!;
    if (scope === "target") this.quietUntil.set(target, until);
    message.reason = outcome;
    if (message.attempts >= this.policy.maxAttempts) message.state = "failed";
    else message.next = until;
    return true;
  }

  #dispatch(repo: Repo): void {
    const window = this.windows.get(repo);
    if (!window?.open || window.silent || window.outstanding !== undefined) return;
    if ((this.quietUntil.get(`${this.run} ${repo}`) ?? 0) > this.now) return;
    const index = this.messages.findIndex((message) =>
      message.repo === repo && message.state === "pending" && !message.lease &&
      message.next <= this.now && (message.bound ?? this.run) === this.run
    );
    if (index < 0) return;
    const message = this.messages[index]!;
    const serial = ++this.#serial;
    message.attempts++;
    message.deliveries++;
    message.next = 0;
    message.lease = { expires: this.now + this.policy.lease, serial, run: this.run };
    window.outstanding = { serial, adopted: false };
    this.lastSerial.set(repo, serial);
    this.handed.push(index);
  }
}
