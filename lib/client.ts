/**
 * Typed calls to the message service. A new connection for every operation, no state between them
 * (T-03); the broker's delivery stream is the one exception. Nothing heavy is imported here: the
 * cost of starting `tamq send` is the cost of what this file loads.
 */
import { type Clock, pause, systemClock, within } from "./base/clock.ts";
import { errorText, RETRY_RULES, TamqError, type WireError } from "./base/errors.ts";
import type { Settings } from "./config.ts";
import { encodeLine, LineReader, writeAll } from "./ipc/lines.ts";
import { liveHolder } from "./ipc/lock.ts";
import { assertOurSocket, inOurDirectory } from "./ipc/socket_file.ts";
import { PROTOCOL } from "./protocol/handshake.ts";
import type { WatchFrame } from "./protocol/events.ts";
import type { OperationName, RequestOf, ResponseOf } from "./protocol/operations.ts";
import type { BrokerFrame, ServiceFrame } from "./protocol/schema.ts";

export interface CallOptions {
  /** For the whole call, milliseconds. */
  timeoutMs?: number;
  signal?: AbortSignal;
  clock?: Clock;
  /** The version to speak; for tests. */
  protocol?: string;
}

const DEFAULT_TIMEOUT_MS = 10_000;
/** Refusals of a service that has too much to do to hear the request; a later one may be heard. */
const UNREAD: ReadonlySet<string> = new Set(["too_many_connections", "request_timeout"]);
/** A page of history may have 1 MiB; an answer far beyond that is not one of our service. */
const MAX_ANSWER_BYTES = 4 << 20;

/**
 * Performs one operation. Throws {@link TamqError}: the service's own error; `service_unavailable`
 * when nobody listens; `connection_lost` when the answer did not come (the same idempotency key may
 * be sent again); `no_answer` after `timeoutMs`; `socket_not_ours` (T-02).
 */
export async function call<K extends OperationName>(
  socket: string,
  op: K,
  request: RequestOf<K>,
  options: CallOptions = {},
): Promise<ResponseOf<K>> {
  return await callRaw(socket, op, request, options) as ResponseOf<K>;
}

/** As {@link call}, for another service that speaks in the same lines. */
export async function callRaw(
  socket: string,
  op: string,
  request: object,
  options: CallOptions = {},
): Promise<unknown> {
  const clock = options.clock ?? systemClock;
  const deadline = clock.monotonic() + (options.timeoutMs ?? DEFAULT_TIMEOUT_MS);
  const line = encodeLine({ op, protocol: options.protocol ?? PROTOCOL, ...request });
  for (let attempt = 0;; attempt++) {
    try {
      return await exchange(socket, line, op, clock, deadline, options.signal);
    } catch (error) {
      // The service ended the connection before it read the request: nothing was done.
      const unread = error instanceof TamqError && UNREAD.has(error.reason);
      if (!unread || !await mayRetry(clock, attempt, deadline, options.signal)) throw error;
    }
  }
}

async function exchange(
  socket: string,
  line: Uint8Array,
  op: string,
  clock: Clock,
  deadline: number,
  signal: AbortSignal | undefined,
): Promise<unknown> {
  const conn = await connect(socket, clock, deadline, signal);
  const close = once(() => conn.close());
  signal?.addEventListener("abort", close);
  try {
    return await within(clock, deadline - clock.monotonic(), request(conn, line), () => {
      throw noAnswer(op);
    });
  } catch (error) {
    throw signal?.aborted ? signal.reason : error;
  } finally {
    signal?.removeEventListener("abort", close);
    close();
  }
}

/** Writes the line, returns the answer's result. */
async function request(conn: Deno.Conn, line: Uint8Array, reader = answerReader(conn)) {
  // The service may answer and close before it has read everything (an oversized request): the
  // failed write matters only when there is no answer either.
  let failure: unknown;
  await writeAll(conn, line).catch((error) => failure = error);
  const answer = await reader.next().catch((error) => {
    failure ??= error;
    return "end" as const;
  });
  if (typeof answer === "string") throw connectionLost(failure);
  return unwrap(parseAnswer(answer));
}

function answerReader(conn: Deno.Conn): LineReader {
  return new LineReader(conn, MAX_ANSWER_BYTES);
}

function parseAnswer(bytes: Uint8Array): Record<string, unknown> {
  try {
    const value: unknown = JSON.parse(new TextDecoder("utf-8", { fatal: true }).decode(bytes));
    if (typeof value === "object" && value !== null) return value as Record<string, unknown>;
  } catch {
    // falls through
  }
  throw answerInvalid();
}

function answerInvalid(): TamqError {
  return new TamqError(
    "UNAVAILABLE",
    "answer_invalid",
    "the service's answer is not understood",
    { hint: "check what listens on the socket: tamq status" },
  );
}

function unwrap(answer: Record<string, unknown>): unknown {
  if (answer.ok === true && typeof answer.result === "object") return answer.result;
  const error = answer.error as Partial<WireError> | null | undefined;
  if (typeof error?.code !== "string" || !Object.hasOwn(RETRY_RULES, error.code)) {
    throw answerInvalid();
  }
  throw TamqError.fromWire(error as WireError);
}

/** A kept connection after its answer. */
export interface Watch {
  readonly response: ResponseOf<"watch">;
  /**
   * What the service sends; ends when it closes or dies. Frames are not validated: a consumer
   * ignores types that it does not know.
   */
  readonly frames: AsyncIterable<WatchFrame>;
  close(): void;
}

/** A kept connection: `attach` and what follows it (T-25). */
export interface Stream {
  readonly response: ResponseOf<"attach">;
  /** As those of {@link Watch}. */
  readonly frames: AsyncIterable<ServiceFrame>;
  /** Resolves when the frame is handed to the kernel; calls keep their order. */
  send(frame: BrokerFrame): Promise<void>;
  close(): void;
}

/** Attaches a window. `close` it always, also after `frames` ended. Errors as {@link call}. */
export async function openStream(
  socket: string,
  attach: RequestOf<"attach">,
  options: CallOptions = {},
): Promise<Stream> {
  const { conn, close, response, frames } = await keep(socket, "attach", attach, options);
  let tail: Promise<void> = Promise.resolve();
  return {
    response,
    frames: frames as AsyncIterable<ServiceFrame>,
    send(frame) {
      const written = tail.then(() => writeAll(conn, encodeLine(frame))).catch((cause) => {
        throw connectionLost(cause);
      });
      tail = written.catch(() => {}); // each caller sees its own failure
      return written;
    },
    close,
  };
}

/** Watches what happens. `close` it always, also after `frames` ended. Errors as {@link call}. */
export async function openWatch(
  socket: string,
  request: RequestOf<"watch">,
  options: CallOptions = {},
): Promise<Watch> {
  const { close, response, frames } = await keep(socket, "watch", request, options);
  return { response, frames: frames as AsyncIterable<WatchFrame>, close };
}

async function keep<K extends "attach" | "watch">(
  socket: string,
  op: K,
  fields: RequestOf<K>,
  options: CallOptions,
) {
  const clock = options.clock ?? systemClock;
  const deadline = clock.monotonic() + (options.timeoutMs ?? DEFAULT_TIMEOUT_MS);
  const conn = await connect(socket, clock, deadline, options.signal);
  const close = once(() => conn.close());
  const reader = answerReader(conn);
  const line = encodeLine({ op, protocol: options.protocol ?? PROTOCOL, ...fields });
  let response: ResponseOf<K>;
  options.signal?.addEventListener("abort", close);
  try {
    response = await within(
      clock,
      deadline - clock.monotonic(),
      request(conn, line, reader) as Promise<ResponseOf<K>>,
      () => {
        throw noAnswer(op);
      },
    );
  } catch (error) {
    close();
    throw options.signal?.aborted ? options.signal.reason : error;
  } finally {
    options.signal?.removeEventListener("abort", close);
  }
  return { conn, close, response, frames: frames(reader) };
}

async function* frames(reader: LineReader): AsyncGenerator<unknown> {
  for (;;) {
    // Closed by either side, also in the middle of a read: the stream is over, which is no error.
    const line = await reader.next().catch(() => "end" as const);
    if (typeof line === "string") return;
    yield parseAnswer(line);
  }
}

async function connect(
  socket: string,
  clock: Clock,
  deadline: number,
  signal: AbortSignal | undefined,
): Promise<Deno.UnixConn> {
  for (let attempt = 0;; attempt++) {
    signal?.throwIfAborted();
    assertOurSocket(socket);
    let conn: Deno.UnixConn;
    try {
      conn = await Deno.connect({ transport: "unix", path: socket });
    } catch (error) {
      // A full backlog: the service is busy accepting others.
      const busy = error instanceof Deno.errors.WouldBlock;
      if (busy && await mayRetry(clock, attempt, deadline, signal)) continue;
      throw unavailable(socket, error);
    }
    if (inOurDirectory(socket)) return conn;
    try {
      (await import("./ipc/server_check.ts")).assertOurServer(socket);
    } catch (error) {
      conn.close();
      throw error;
    }
    return conn;
  }
}

/** Waits 2, 4, 8 … at most 100 ms; false when the deadline would pass meanwhile. */
async function mayRetry(
  clock: Clock,
  attempt: number,
  deadline: number,
  signal: AbortSignal | undefined,
): Promise<boolean> {
  const wait = Math.min(100, 2 << Math.min(attempt, 6));
  if (clock.monotonic() + wait >= deadline) return false;
  await pause(clock, wait, signal);
  return signal?.aborted !== true;
}

function unavailable(socket: string, cause: unknown): TamqError {
  const absent = cause instanceof Deno.errors.NotFound ||
    cause instanceof Deno.errors.ConnectionRefused ||
    cause instanceof Deno.errors.ConnectionReset;
  const why = absent ? "no service listens" : errorText(cause);
  return new TamqError("UNAVAILABLE", "service_unavailable", `${why} on ${socket}`, {
    hint: absent ? "start it with: tamq serve --detach" : "look at it with: tamq status",
    cause,
  });
}

function connectionLost(cause: unknown): TamqError {
  return new TamqError(
    "UNAVAILABLE",
    "connection_lost",
    "the service closed the connection without an answer",
    { hint: "the outcome is unknown; repeat it with the same idempotency key", cause },
  );
}

function noAnswer(op: string): TamqError {
  return new TamqError(
    "DEADLINE_EXCEEDED",
    "no_answer",
    `the service did not answer ${op} in time`,
    {
      hint: "the outcome is unknown; look with tamq history before you repeat it",
    },
  );
}

function once(fn: () => void): () => void {
  let done = false;
  return () => {
    if (done) return;
    done = true;
    fn();
  };
}

/**
 * The socket to talk to. Nobody named one explicitly: the one of the live service on the same state
 * directory, since shells may differ in XDG_RUNTIME_DIR; else the configured one.
 */
export function findSocket(settings: Settings): string {
  if (settings.socketExplicit) return settings.socket;
  return liveHolder(settings.stateDir)?.socket ?? settings.socket;
}
