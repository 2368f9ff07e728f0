/** Route to store: one function a route, typed by the route table. */
import { rfc3339 } from "../base/clock.ts";
import {
  type AnswerOf,
  API_VERSION,
  type BodyOf,
  etag,
  type ParamsOf,
  type QueryOf,
  type RouteName,
} from "./api.ts";
import * as may from "./authority.ts";
import { openApi } from "./openapi.ts";
import type { MessageState } from "./rules.ts";
import { CHANGE_KINDS, type NewNote } from "./schema.ts";
import type { HubStore, Mutation } from "./store/hub_store.ts";
import type { SignedNote } from "./store/notes.ts";

export interface Input<K extends RouteName> {
  readonly params: ParamsOf<K>;
  readonly query: QueryOf<K>;
  readonly body: BodyOf<K>;
  readonly caller: may.Caller;
  /** The revision of `If-Match`; undefined when any will do. */
  readonly ifMatch: number | undefined;
  /** Of the route and everything it was given, for the recognition of repeats. */
  readonly digest: string;
}

export interface Answer<K extends RouteName> {
  readonly value: AnswerOf<K>;
  readonly etag?: string;
  /** The change was made before; nothing new was created. */
  readonly repeated?: boolean;
}

/** Every route but the stream, which is no single answer. */
export type AnsweringRoute = Exclude<RouteName, "streamChanges">;
export type Handlers = {
  readonly [K in AnsweringRoute]: (input: Input<K>) => Promise<Answer<K>> | Answer<K>;
};

export interface HubFacts {
  readonly version: string;
  readonly startedAt: number;
}

export function kindsOf(query: { kinds?: string }): readonly string[] {
  return query.kinds === undefined ? CHANGE_KINDS : query.kinds.split(",");
}

export function createHandlers(store: HubStore, facts: HubFacts): Handlers {
  const { plans, tasks, messages, journal } = store;

  /** A change of a record that has a revision. */
  const change = async <T extends { revision: number }>(
    input: { body: { idempotency_key?: string }; digest: string },
    rest: Omit<Mutation<T>, "key" | "digest">,
  ) => {
    const { record, repeated } = await store.mutate({
      ...rest,
      key: input.body.idempotency_key,
      digest: input.digest,
    });
    return { value: record, etag: etag(record.revision), repeated };
  };
  const onTask = {
    kind: "task",
    idOf: (task: { task_id: string }) => task.task_id,
    again: (id: string) => tasks.get(id),
  } as const;
  const onPlan = {
    kind: "workplan",
    idOf: (plan: { workplan_id: string }) => plan.workplan_id,
    again: (id: string) => plans.get(id),
  } as const;
  const onMessage = {
    kind: "message",
    idOf: (message: { message_id: string }) => message.message_id,
    again: (id: string) => messages.get(id),
  } as const;
  const receive = (
    { params, caller, ifMatch }: Pick<Input<"ackMessage">, "params" | "caller" | "ifMatch">,
    state: MessageState,
  ) => {
    may.mayReceive(caller, messages.get(params.message_id));
    return messages.move(params.message_id, ifMatch, state);
  };
  const one = <T extends { revision: number }>(value: T) => ({ value, etag: etag(value.revision) });

  return {
    hub: () => ({
      value: {
        hub_id: store.hubId,
        api_version: API_VERSION,
        version: facts.version,
        started_at: rfc3339(facts.startedAt),
        cursor: store.head(),
      },
    }),
    openapi: () => ({ value: openApi() }),
    listChanges: ({ query }) => {
      const value = store.changes(query.cursor, kindsOf(query), query.limit ?? 100);
      return { value, etag: `"${value.next_cursor}"` };
    },
    listWorkplans: ({ query }) => ({
      value: store.page("workplans", query, 0, (place) => plans.list(query, place)),
    }),
    createWorkplan: (input) => change(input, { ...onPlan, work: () => plans.create(input.body) }),
    getWorkplan: ({ params }) => one(plans.get(params.workplan_id)),
    editWorkplan: (input) =>
      change(input, {
        ...onPlan,
        work: () => {
          const { params: { workplan_id }, caller, body, ifMatch } = input;
          may.mayEditPlan(caller, plans.get(workplan_id), body);
          return plans.edit(workplan_id, ifMatch, body);
        },
      }),
    addWorkplanNote: (input) =>
      change(input, {
        ...onPlan,
        work: () => {
          const { params: { workplan_id }, caller, body, ifMatch } = input;
          may.mayNote(caller, `workplan "${workplan_id}"`, plans.get(workplan_id).repo, body);
          return plans.addNote(workplan_id, ifMatch, signed(caller, body));
        },
      }),
    resolveWorkplanNote: (input) =>
      change(input, {
        ...onPlan,
        work: () => {
          const { params, caller, ifMatch } = input;
          const { workplan_id, note_id } = params;
          may.mayResolve(caller, `workplan "${workplan_id}"`, plans.get(workplan_id), note_id);
          return plans.resolveNote(params, ifMatch);
        },
      }),
    listTasks: ({ query }) => ({
      value: store.page("tasks", query, 0, (place) => tasks.list(query, place)),
    }),
    createTask: (input) => change(input, { ...onTask, work: () => tasks.create(input.body) }),
    getTask: ({ params }) => one(tasks.get(params.task_id)),
    editTask: (input) =>
      change(input, {
        ...onTask,
        work: () => {
          const { params: { task_id }, caller, body, ifMatch } = input;
          may.mayEditTask(caller, tasks.get(task_id), body);
          return tasks.edit(task_id, ifMatch, body);
        },
      }),
    addTaskNote: (input) =>
      change(input, {
        ...onTask,
        work: () => {
          const { params: { task_id }, caller, body, ifMatch } = input;
          may.mayNote(caller, `task "${task_id}"`, tasks.get(task_id).repo, body);
          return tasks.addNote(task_id, ifMatch, signed(caller, body));
        },
      }),
    resolveTaskNote: (input) =>
      change(input, {
        ...onTask,
        work: () => {
          const { params, caller, ifMatch } = input;
          const { task_id, note_id } = params;
          may.mayResolve(caller, `task "${task_id}"`, tasks.get(task_id), note_id);
          return tasks.resolveNote(params, ifMatch);
        },
      }),
    listMessages: ({ query }) => ({
      value: store.page("messages", query, 0, (place) => messages.list(query, place)),
    }),
    createMessage: (input) =>
      change(input, {
        ...onMessage,
        work: () => {
          const { caller, body } = input;
          may.maySend(caller, body);
          return messages.create({ ...body, sender: body.sender ?? may.nameOf(caller) });
        },
      }),
    getMessage: ({ params }) => one(messages.get(params.message_id)),
    readMessage: (input) =>
      change(input, {
        ...onMessage,
        work: () => receive(input, "read"),
      }),
    ackMessage: (input) =>
      change(input, {
        ...onMessage,
        work: () => receive(input, "acknowledged"),
      }),
    listCheckpoints: ({ query }) => ({
      value: store.page("checkpoints", query, NEWEST, (place) => journal.checkpoints(query, place)),
    }),
    createCheckpoint: async ({ body, caller, digest }) => {
      const { record, repeated } = await store.mutate({
        key: body.idempotency_key,
        digest,
        kind: "checkpoint",
        idOf: (checkpoint) => checkpoint.checkpoint_id,
        work: () => {
          may.mayCheckpoint(caller, body);
          return journal.addCheckpoint(body);
        },
        again: (id) => journal.checkpoint(id),
      });
      return { value: record, repeated };
    },
    listReceipts: ({ query }) => ({
      value: store.page("receipts", query, NEWEST, (place) => journal.receipts(query, place)),
    }),
    publishReceipt: async ({ body, caller, digest }) => {
      const { record, repeated } = await store.mutate({
        key: body.idempotency_key,
        digest,
        kind: "receipt",
        idOf: (receipt) => receipt.receipt_id,
        work: () => {
          may.mayPublish(caller);
          return journal.addReceipt(body);
        },
        again: (id) => journal.receipt(id),
      });
      return { value: record, repeated };
    },
  };
}

/** A note without a name bears its caller's. */
function signed(caller: may.Caller, note: NewNote): SignedNote {
  return { ...note, author: note.author ?? may.nameOf(caller) };
}

/** Before the first page of a list that runs backwards. */
const NEWEST = Number.MAX_SAFE_INTEGER;
