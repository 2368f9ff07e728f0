/** What a wake says: the record as the hub has it now, the prompt, and whether it holds a secret. */
import { rfc3339 } from "../base/clock.ts";
import { TamqError } from "../base/errors.ts";
import type { Checkpoint } from "../model/checkpoint.ts";
import type { CoordinationSettings } from "../model/coordination.ts";
import type { Registry } from "../model/ports.ts";
import type { WorkerTrigger } from "../model/trigger.ts";
import { buildPrompt, readOverride, type Work } from "./continuation.ts";
import type { Subject } from "./gates.ts";
import { checkpointSubject, messageSubject, planSubject, taskSubject } from "./normalize.ts";
import type { Rules } from "./receipts.ts";
import type { TriggerRow } from "./records.ts";
import type { StateHubClient } from "./statehub_client.ts";
import { answerInvalid } from "./statehub_http.ts";
import type { CoordStore } from "./store/store.ts";

export interface WakesOptions {
  readonly store: CoordStore;
  /** Undefined while the hub cannot be reached. */
  readonly hub: () => StateHubClient | undefined;
  readonly registry: Registry;
  readonly rules: Rules;
  readonly settings: CoordinationSettings;
  readonly holdsSecret: (text: string) => Promise<boolean>;
  /** The identity of a live endpoint (K-09). */
  readonly coordEndpoint: (endpointId: string) => string | undefined;
  /** Cuts what the hub is being asked. */
  readonly signal?: AbortSignal;
}

export interface Draft {
  /** Undefined: the hub has no such record any more. */
  readonly subject: Subject | undefined;
  readonly secret: boolean;
  readonly checkpoint: Checkpoint | undefined;
  readonly prompt: (handle: string) => string;
}

/** The handle of a lease has this form; it stands in the prompt that is looked at for secrets. */
const SAMPLE_HANDLE = "0".repeat(26) + ".0";

export class Wakes {
  readonly #o: WakesOptions;

  constructor(options: WakesOptions) {
    this.#o = options;
  }

  coordEndpoint(endpointId: string): string | undefined {
    return this.#o.coordEndpoint(endpointId);
  }

  /** Throws `hub_unreachable`, the hub's own errors, and `prompt_impossible`. */
  async prepare(row: TriggerRow): Promise<Draft> {
    const { store, registry, rules, settings, holdsSecret } = this.#o;
    const source = await this.#read(row);
    const saved = store.journal.latestCheckpoint(row.source, row.sourceId, row.targetRepo);
    const checkpoint = source?.checkpoint ??
      (saved === undefined ? undefined : JSON.parse(saved.record) as Checkpoint);
    if (source === undefined) {
      return { subject: undefined, secret: false, checkpoint, prompt: () => "" };
    }
    const found = registry.find(row.targetRepo);
    const override = typeof found === "string" ? undefined : readOverride(found.path);
    const prompt = (handle: string) =>
      buildPrompt({
        trigger: {
          ...triggerOf(row),
          ...(checkpoint !== undefined && { reason: "checkpoint_resume" as const }),
        },
        work: source.work,
        checkpoint,
        handle,
        policy: rules.profile,
        leaseSeconds: settings.leaseSeconds,
        hallOfHelix: settings.hallOfHelix,
        override,
      });
    const secret = await holdsSecret(prompt(SAMPLE_HANDLE));
    return { subject: source.subject, secret, checkpoint, prompt };
  }

  async #read(
    row: TriggerRow,
  ): Promise<{ subject: Subject; work: Work; checkpoint?: Checkpoint } | undefined> {
    const { signal } = this.#o;
    const hub = this.#o.hub();
    if (hub === undefined) {
      throw new TamqError("UNAVAILABLE", "hub_unreachable", "the State Hub cannot be reached");
    }
    try {
      switch (row.source) {
        case "task": {
          const { value } = await hub.call("getTask", {
            params: { task_id: row.sourceId },
            signal,
          });
          const id = same(row.sourceId, value.task_id);
          return {
            subject: taskSubject(value),
            work: {
              title: value.title,
              text: value.description,
              show: `tamq hub task show ${id}`,
              done: `tamq hub task done ${id}`,
            },
          };
        }
        case "workplan": {
          const params = { workplan_id: row.sourceId };
          const { value } = await hub.call("getWorkplan", { params, signal });
          return {
            subject: planSubject(value),
            work: {
              title: value.title,
              text: value.description,
              show: `tamq hub plan show ${same(row.sourceId, value.workplan_id)}`,
              done: null,
            },
          };
        }
        case "message": {
          const params = { message_id: row.sourceId };
          const { value } = await hub.call("getMessage", { params, signal });
          const id = same(row.sourceId, value.message_id);
          return {
            subject: messageSubject(value),
            work: {
              title: value.subject,
              text: value.body,
              show: `tamq hub message show ${id}`,
              done: `tamq hub message ack ${id}`,
            },
          };
        }
        case "checkpoint":
          return await this.#readCheckpoint(hub, row);
      }
    } catch (error) {
      if (error instanceof TamqError && error.code === "NOT_FOUND") return undefined;
      throw error;
    }
  }

  /** A checkpoint that somebody else published: found by its repository, newest first. */
  async #readCheckpoint(hub: StateHubClient, row: TriggerRow) {
    const { signal } = this.#o;
    const query = { repo: row.targetRepo, limit: 500 };
    const { items } = (await hub.call("listCheckpoints", { query, signal })).value;
    const found = items.find((one) => one.checkpoint_id === row.sourceId);
    if (found === undefined) return undefined;
    const id = found.task_id;
    const task = id === undefined
      ? undefined
      : (await hub.call("getTask", { params: { task_id: id }, signal })).value;
    if (task !== undefined) same(id!, task.task_id);
    const { checkpoint_id: _, repo: __, ...checkpoint } = found;
    return {
      subject: checkpointSubject(found, task),
      checkpoint,
      work: {
        title: task?.title ?? "go on from a checkpoint",
        text: task?.description ?? "",
        show: id === undefined ? "tamq hub task list" : `tamq hub task show ${id}`,
        done: id === undefined ? null : `tamq hub task done ${id}`,
      },
    };
  }
}

/** A hub that answers with another record would have that one's work done, and pass its gates. */
function same(asked: string, answered: string): string {
  if (asked === answered) return answered;
  throw answerInvalid("is another record than the one asked for");
}

/** The contract's form of a trigger. */
export function triggerOf(row: TriggerRow): WorkerTrigger {
  return {
    id: row.triggerId,
    source: row.source,
    source_id: row.sourceId,
    source_revision: row.sourceRevision,
    target_repo: row.targetRepo,
    ...(row.targetAgent !== null && { target_agent: row.targetAgent }),
    reason: row.attempts > 0 ? "retry_due" : row.reason,
    observed_at: rfc3339(row.observedAt),
  };
}
