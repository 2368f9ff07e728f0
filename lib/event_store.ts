/**
 * A store that tells {@link EventFeed} what is written into it: every change of a message and every
 * receipt passes here, so that nothing can change state without an event. Its commit tells them once
 * they are on disk.
 */
import { rfc3339 } from "./base/clock.ts";
import type { EventFeed, Happening, Predecessor } from "./event_feed.ts";
import type { Window } from "./model/ports.ts";
import type {
  MessageRecord,
  MessageStore,
  QueueStore,
  ReceiptData,
  ReceiptKind,
} from "./model/records.ts";
import type { Commit } from "./queue.ts";

type MessageChange = Extract<Happening, { type: "message" }>["change"];

export function tellingCommit(commit: Commit, feed: EventFeed): Commit {
  return {
    run: (work) => feed.inside((inner) => commit.run(inner), work),
    drain: () => commit.drain(),
  };
}

export function tellingStore(store: QueueStore, feed: EventFeed): QueueStore {
  /** Of the endpoints that windows of this service registered, by reference. */
  const names = new Map<number, string>();
  const nameOf = (ref: number | null) => ref === null ? null : names.get(ref) ?? null;
  const tell = (change: MessageChange, now: MessageRecord, leaseRef: number | null) =>
    feed.add({
      type: "message",
      change,
      time: feed.now(),
      message_id: now.messageId,
      sender_repo: now.senderRepo,
      target_repo: now.targetRepo,
      provenance: now.provenance,
      state: now.state,
      attempt: now.attemptCount,
      endpoint_id: nameOf(leaseRef) ?? now.endpointId,
      reason: reasonOf(change, now),
      next_attempt_at: change === "waiting" && now.nextAttemptAt !== null
        ? rfc3339(now.nextAttemptAt)
        : null,
    });
  return {
    attempts: store.attempts,
    purge: store.purge,
    controls: store.controls,
    messages: withMethods<MessageStore>(store.messages, {
      insert(message) {
        const now = store.messages.insert(message);
        tell("admitted", now, null);
        return now;
      },
      update(before, change) {
        const now = store.messages.update(before, change);
        const what = changeOf(before, now);
        if (what !== undefined) tell(what, now, now.leaseRef ?? before.leaseRef);
        return now;
      },
    }),
    endpoints: withMethods(store.endpoints, {
      register(facts, at) {
        const ref = store.endpoints.register(facts, at);
        names.set(ref, facts.endpointId);
        return ref;
      },
    }),
    receipts: withMethods(store.receipts, {
      add(kind, at, data) {
        const id = store.receipts.add(kind, at, data);
        const event = receiptEvent(kind, data, feed);
        if (event !== undefined) feed.add(event);
        return id;
      },
    }),
  };
}

/** How the service before this one ended; undefined when it did not say (a crash). Before the start receipt. */
export function predecessorOf(store: Pick<QueueStore, "receipts">): Predecessor | undefined {
  const last = store.receipts.latest(["start", "shutdown"]);
  const { service_id: serviceId, events } = last?.kind === "shutdown" ? last.data : {};
  if (typeof serviceId !== "string" || typeof events !== "number") return undefined;
  return { serviceId, events };
}

export function gateEvent(
  window: Pick<Window, "repo" | "endpointId">,
  gate: { readonly open: boolean; readonly reason: string | null },
  time: number,
): Happening {
  return {
    type: "gate",
    change: gate.open ? "opened" : "closed",
    time,
    repo: window.repo,
    endpoint_id: window.endpointId,
    reason: gate.reason,
  };
}

/** An object of a class with some methods replaced; the others keep their own `this`. */
function withMethods<T extends object>(object: T, methods: Partial<T>): T {
  const all: Record<string, unknown> = {};
  for (const name of Object.getOwnPropertyNames(Object.getPrototypeOf(object))) {
    const value = object[name as keyof T];
    if (typeof value === "function") all[name] = value.bind(object);
  }
  return { ...all, ...methods } as T;
}

function changeOf(before: MessageRecord, now: MessageRecord): MessageChange | undefined {
  if (now.leaseToken !== null && now.leaseToken !== before.leaseToken) return "delivering";
  if (now.state !== before.state) {
    if (now.state === "acknowledged") return "acknowledged";
    if (now.state === "failed") {
      return now.lastFailureReason === "cancelled" ? "cancelled" : "failed";
    }
    if (now.state !== "pending") return "delivered";
    return before.state === "failed" ? "retried" : "waiting";
  }
  if (before.leaseToken !== null && now.leaseToken === null) return "waiting";
  return now.endpointRef === before.endpointRef ? undefined : "rebound";
}

function reasonOf(change: MessageChange, now: MessageRecord): string | null {
  if (change === "admitted") return now.held === 1 ? "held" : null;
  return change === "waiting" || change === "failed" ? now.lastFailureReason : null;
}

function receiptEvent(
  kind: ReceiptKind,
  data: ReceiptData,
  feed: EventFeed,
): Happening | undefined {
  const time = feed.now();
  const text = (name: string) => String(data[name] ?? "");
  const name = (field: string) => data[field] === undefined ? null : String(data[field]);
  switch (kind) {
    case "attach":
    case "detach":
      return {
        type: "window",
        change: kind === "attach" ? "attached" : "detached",
        time,
        repo: text("repo"),
        endpoint_id: text("endpoint_id"),
      };
    case "operator": {
      const op = data.op === "allow" && data.remove === true ? "disallow" : text("op");
      return {
        type: "control",
        change: op as Extract<Happening, { type: "control" }>["change"],
        time,
        sender_repo: name("sender"),
        target_repo: name("target") ?? name("repo"),
      };
    }
    case "storm":
      return {
        type: "storm",
        change: "blocked",
        time,
        sender_repo: text("sender_repo"),
        target_repo: text("target_repo"),
      };
    case "purge":
      return { type: "purge", change: "begun", time };
    case "start":
      return { type: "service", change: "started", time, service_id: feed.serviceId };
    case "shutdown":
      return { type: "service", change: "stopping", time, service_id: feed.serviceId };
  }
}
