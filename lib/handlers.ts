/**
 * One handler per operation of the table: who is calling, what they may do, and the queue's answer.
 * The caller is who the kernel says, never who the request says (B-04).
 */
import type { Attached, Attachments } from "./attachments.ts";
import { rfc3339 } from "./base/clock.ts";
import { TamqError } from "./base/errors.ts";
import type { ProcessIdentity } from "./base/proc.ts";
import type { EventFeed } from "./event_feed.ts";
import { endpointId } from "./model/endpoint.ts";
import type { Peer, Processes } from "./model/ports.ts";
import { CAPABILITIES, PROTOCOL } from "./protocol/handshake.ts";
import { parseRequest } from "./protocol/frame.ts";
import type { OperationName, RequestOf, ResponseOf } from "./protocol/operations.ts";
import type { WireStatus } from "./protocol/schema.ts";
import type { Origin, Queue } from "./queue.ts";
import type { Handle, Json, Reply } from "./socket.ts";
import type { WindowStreams } from "./window_streams.ts";

/** What tells this run of the service from any other. */
export interface ServiceIdentity {
  readonly serviceId: string;
  readonly version: string;
  readonly pid: number;
  /** Milliseconds since the epoch. */
  readonly startedAt: number;
}

export interface HandlerOptions {
  readonly identity: ServiceIdentity;
  readonly queue: Queue;
  readonly attachments: Attachments;
  readonly processes: Processes;
  readonly windows: WindowStreams;
  /** What happens, for those who watch. */
  readonly events: Pick<EventFeed, "watch">;
  /** Whether that process is a broker, attached or not; by its argument vector. */
  readonly isBroker: (pid: number) => boolean;
  readonly status: () => WireStatus;
  /** A broker that is not attached tried to send: it may end before it ever is (B-13). */
  readonly onStray?: (broker: ProcessIdentity) => void;
}

/** What a handler knows of a request beside its fields. */
export interface Call {
  readonly peer: Peer;
  /** The client's version. */
  readonly protocol: string;
  readonly newerMinor: boolean;
}

type Handlers = {
  [K in OperationName]: (
    fields: RequestOf<K>,
    call: Call,
  ) => Promise<Reply> | Reply | Promise<Answer<K>> | Answer<K>;
};
/** A plain result; `attach` and `watch` alone answer with a {@link Reply}. */
interface Answer<K extends OperationName> {
  readonly result: ResponseOf<K>;
}

/** The function that the socket calls for every request. */
export function createHandlers(options: HandlerOptions): Handle {
  const { queue, attachments, processes, windows, identity } = options;

  const originOf = (peer: Peer): Origin => {
    const pids = peer.ancestry?.() ?? processes.ancestry(peer.pid);
    // Gone already, in another pid namespace, or hidden: it could be anybody (fails closed).
    if (pids.length === 0) {
      throw new TamqError(
        "UNAUTHENTICATED",
        "peer_unknown",
        "the process that asks cannot be traced",
        { hint: "keep the command running until it has its answer, outside containers" },
      );
    }
    const owner = attachments.ownerOf(pids);
    if (owner !== undefined) return { owner };
    // A window whose broker is not (or not yet again) attached is not "local": what an agent sends
    // right after a restart of the service must not look like an operator's word.
    if (!pids.some(options.isBroker)) return {};
    if (options.isBroker(peer.pid)) {
      const broker = processes.identify(peer.pid);
      if (broker !== undefined) options.onStray?.(broker);
    }
    throw new TamqError(
      "UNAVAILABLE",
      "not_attached",
      "the window that this comes from is not attached to the service",
      { hint: "try again in a moment; a window opened with --no-service stays without messages" },
    );
  };

  /** An agent cannot lift its own limits (T-27). */
  const originOfOperator = (peer: Peer): Origin => {
    const origin = originOf(peer);
    if (origin.owner === undefined || origin.owner.isBroker) return origin;
    throw new TamqError(
      "PERMISSION_DENIED",
      "worker_refused",
      `a command in the window of ${origin.owner.attached.window.repo} may not do this`,
      { hint: "run it in a terminal outside the windows that tamq opened" },
    );
  };

  /**
   * A program in a window acknowledges what was sent to its repository and withdraws what its own
   * repository sent, nothing else: either would keep a message from somebody (B-04).
   */
  const mayTouch = (messageId: string, side: "sender_repo" | "target_repo", peer: Peer) => {
    const { owner } = originOf(peer);
    if (owner === undefined) return;
    const { message } = queue.message(messageId);
    const repo = owner.attached.window.repo;
    if (message[side] === repo) return;
    const rule = side === "target_repo"
      ? "acknowledges only messages to its own repository"
      : "withdraws only messages of its own repository";
    throw new TamqError(
      "PERMISSION_DENIED",
      "worker_refused",
      `a command in the window of ${repo} ${rule}`,
      { hint: "run it in a terminal outside the windows that tamq opened" },
    );
  };

  /**
   * The operator of a window, where they write beside it: a process that the window's own tmux
   * server started, outside of every window. What a worker starts is below the worker; its
   * environment says nothing (B-04).
   */
  const operatorBeside = (tmux: RequestOf<"compose">["tmux"], peer: Peer): Attached => {
    const origin = originOfOperator(peer);
    const attached = attachments.all().find(({ window }) =>
      window.endpointId === endpointId(tmux.server_pid) && window.windowId === tmux.window_id
    );
    if (attached === undefined) {
      throw new TamqError(
        "NOT_FOUND",
        "window_unknown",
        `no window ${tmux.window_id} of the tmux server ${tmux.server_pid} is attached`,
        { hint: "see which are: tamq endpoints; tamq send works from everywhere" },
      );
    }
    const pids = peer.ancestry?.() ?? processes.ancestry(peer.pid);
    if (origin.owner === undefined && pids.slice(1).includes(tmux.server_pid)) return attached;
    throw new TamqError(
      "PERMISSION_DENIED",
      "sender_mismatch",
      `the tmux server ${tmux.server_pid} did not start the process that asks`,
      { hint: "open it by its key (tamq compose --bind KEY), or use: tamq send" },
    );
  };

  const handlers: Handlers = {
    ping: () => ({
      result: {
        protocol: PROTOCOL,
        version: identity.version,
        capabilities: [...CAPABILITIES],
        service_id: identity.serviceId,
        pid: identity.pid,
        started_at: rfc3339(identity.startedAt),
      },
    }),
    attach: (fields, call) => windows.attach(fields, call),
    endpoints: () => ({ result: { endpoints: windows.endpoints() } }),
    send: async (fields, { peer }) => ({ result: await queue.send(fields, originOf(peer)) }),
    compose: async ({ tmux, ...fields }, { peer }) => {
      const attached = operatorBeside(tmux, peer);
      const { repo } = attached.window;
      const request = {
        ...fields,
        client_id: "tamq-compose",
        sender_repo: repo,
        provenance: "operator",
      } as const;
      // From here on it is what its broker would send for a line that was typed in the window.
      const sent = await queue.send(request, { owner: { attached, isBroker: true } });
      return { result: { ...sent, sender_repo: repo } };
    },
    message: ({ message_id }) => ({ result: queue.message(message_id) }),
    history: (fields) => ({ result: historyPage(queue, fields) }),
    ack: async ({ message_id }, { peer }) => {
      mayTouch(message_id, "target_repo", peer);
      return { result: await queue.ack(message_id) };
    },
    retry: async ({ message_id }, { peer }) => ({
      result: await queue.retry(message_id, originOfOperator(peer)),
    }),
    cancel: async ({ message_id }, { peer }) => {
      mayTouch(message_id, "sender_repo", peer);
      return { result: await queue.cancel(message_id) };
    },
    replay: async (fields, { peer }) => ({ result: await queue.replay(fields, originOf(peer)) }),
    purge: async (fields, { peer }) => {
      if (fields.execute === true) originOfOperator(peer);
      return { result: await queue.purge(fields) };
    },
    allow: async (fields, { peer }) => {
      originOfOperator(peer);
      return { result: await queue.controls.allow(fields) };
    },
    unblock: async (fields, { peer }) => {
      originOfOperator(peer);
      return { result: await queue.controls.unblock(fields) };
    },
    pause: async (_, { peer }) => {
      originOfOperator(peer);
      return { result: await queue.controls.pause() };
    },
    resume: async (_, { peer }) => {
      originOfOperator(peer);
      return { result: await queue.controls.resume() };
    },
    release: async (fields, { peer }) => {
      originOfOperator(peer);
      return { result: await queue.controls.release(fields) };
    },
    upgrade: async (fields, { peer }) => {
      originOfOperator(peer);
      return { result: await windows.upgrades.run(fields) };
    },
    watch: (fields) => options.events.watch(fields),
    status: () => ({ result: options.status() }),
  };

  return (json: Json, peer: Peer) => {
    const request = parseRequest(json);
    const call = { peer, protocol: request.protocol, newerMinor: request.newerMinor };
    // The union of requests and the table of handlers have the same keys; TypeScript cannot see
    // that the two look-ups meet.
    const handler = handlers[request.op] as (fields: unknown, call: Call) => Promise<Reply>;
    return handler(request.fields, call);
  };
}

/** A page holds at most so many messages, and so many bytes of them (T-22). */
export const HISTORY_PAGE_MESSAGES = 256;
/** Under the answer's own limit of 1 MiB, with room for what surrounds the messages. */
export const HISTORY_PAGE_BYTES = (1 << 20) - 4096;

const encoder = new TextEncoder();

/**
 * One page, however long the bodies are: as many messages as fit, at least one, and the cursor of
 * the next. The reader goes on until `next_cursor` is null or it has what it wanted.
 */
export function historyPage(
  queue: Pick<Queue, "history">,
  fields: RequestOf<"history">,
): ResponseOf<"history"> {
  const asked = fields.limit === undefined
    ? fields
    : { ...fields, limit: Math.min(fields.limit, HISTORY_PAGE_MESSAGES) };
  const page = queue.history(asked);
  let bytes = 0;
  let fit = 0;
  for (const message of page.messages) {
    bytes += encoder.encode(JSON.stringify(message)).length + 1;
    if (bytes > HISTORY_PAGE_BYTES && fit > 0) break;
    fit++;
  }
  // Asked again rather than cut: only the queue knows its cursors. Nothing changes in between,
  // since both reads happen in one turn.
  return fit === page.messages.length ? page : queue.history({ ...fields, limit: fit });
}
