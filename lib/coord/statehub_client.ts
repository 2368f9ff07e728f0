/**
 * Typed calls to a State Hub, embedded or somebody else's. What it answers is checked against the
 * route table and never trusted: wrong, huge, deep or old answers are typed errors (K-01, K-19).
 */
import { type Clock, pause, systemClock } from "../base/clock.ts";
import { TamqError } from "../base/errors.ts";
import { newToken } from "../base/ids.ts";
import { type Random, systemRandom } from "../base/random.ts";
import {
  type AnswerOf,
  type BodyOf,
  etag,
  type ParamsOf,
  type QueryOf,
  type Route,
  type RouteName,
  routes,
} from "../hub/api.ts";
import { type Change, change as changeSchema, type ChangeKind } from "../hub/schema.ts";
import type { HubAddress } from "../hub/settings.ts";
import type { Orwell } from "../ipc/orwell.ts";
import { EventParser } from "./statehub_events.ts";
import { answerInvalid, checkAnswer, failureOf, parseJson, parseText } from "./statehub_http.ts";
import { Revisions } from "./statehub_revisions.ts";
import { HubTransport, type Incoming } from "./statehub_transport.ts";

export interface HubClientOptions {
  readonly address: HubAddress;
  /** A credential for a State Hub that is not the embedded one (K-16); asked for at each request. */
  readonly bearer?: () => Promise<string> | string;
  readonly clock?: Clock;
  readonly random?: Random;
  /** For one try, milliseconds. */
  readonly timeoutMs?: number;
  /** Pauses between tries, milliseconds; their number bounds the tries. */
  readonly backoffMs?: readonly number[];
  readonly maxAnswerBytes?: number;
  readonly orwell?: Orwell;
  /** A subscription that is silent for so long is opened again; over two heartbeats. */
  readonly idleMs?: number;
}

type Callable = Exclude<RouteName, "streamChanges">;
type Given<Name extends string, T> = T extends undefined ? unknown
  : Record<string, never> extends T ? { readonly [K in Name]?: T }
  : { readonly [K in Name]: T };
/** What a call needs: only the parts that its route has. */
export type RequestOf<K extends Callable> =
  & Given<"params", ParamsOf<K>>
  & Given<"query", QueryOf<K>>
  & Given<"body", BodyOf<K>>
  & {
    /** The revision that the change is meant for; `"*"` for whatever it is. */
    readonly ifMatch?: number | "*";
    readonly signal?: AbortSignal;
  };

export interface Reply<K extends Callable> {
  readonly value: AnswerOf<K>;
  readonly etag: string | undefined;
}

/** What a subscription tells. */
export type FeedEvent =
  | { readonly type: "connected" }
  | { readonly type: "change"; readonly change: Change }
  /** It is opened again by itself after `retryInMs`. */
  | { readonly type: "lost"; readonly error: TamqError; readonly retryInMs: number };

const DEFAULT_BACKOFF_MS = [100, 400, 1600] as const;
/** Larger than the hub's pages by far, since a character may take three bytes. */
const DEFAULT_ANSWER_BYTES = 8 << 20;
/** Between the tries of a subscription, milliseconds. */
const RECONNECT_MS = [100, 500, 2000, 5000, 15_000] as const;

export class StateHubClient implements Disposable {
  readonly #transport: HubTransport;
  readonly #clock: Clock;
  readonly #random: Random;
  readonly #timeoutMs: number;
  readonly #backoffMs: readonly number[];
  readonly #idleMs: number;
  /** What the change feed has told so far. */
  readonly revisions = new Revisions();

  constructor(options: HubClientOptions) {
    this.#clock = options.clock ?? systemClock;
    this.#random = options.random ?? systemRandom;
    this.#timeoutMs = options.timeoutMs ?? 10_000;
    this.#backoffMs = options.backoffMs ?? DEFAULT_BACKOFF_MS;
    this.#idleMs = options.idleMs ?? 40_000;
    this.#transport = new HubTransport({
      address: options.address,
      bearer: options.bearer,
      clock: this.#clock,
      random: this.#random,
      orwell: options.orwell,
      maxAnswerBytes: options.maxAnswerBytes ?? DEFAULT_ANSWER_BYTES,
    });
  }

  close(): void {
    this.#transport.close();
  }
  [Symbol.dispose](): void {
    this.close();
  }

  /**
   * One call. Repeated by itself, with the same idempotency key, while the hub is not reachable or
   * too busy. Throws the hub's own error; `hub_unavailable`, `no_answer`; `answer_invalid`,
   * `answer_too_large`, `hub_unproven`; `socket_not_ours`.
   */
  async call<K extends Callable>(name: K, request: RequestOf<K>): Promise<Reply<K>> {
    const reply = await this.#call(name, request as Loose, undefined);
    if (reply === undefined) throw answerInvalid("says that nothing changed, which was not asked");
    return reply as Reply<K>;
  }

  /** As {@link call}, for a route with an ETag: undefined while `known` is still the ETag. */
  async callIfChanged<K extends Callable>(
    name: K,
    request: RequestOf<K>,
    known: string,
  ): Promise<Reply<K> | undefined> {
    return await this.#call(name, request as Loose, known) as Reply<K> | undefined;
  }

  /**
   * A page of the change feed after `cursor`. Throws also `revision_regressed`, and `cursor_expired`
   * when the hub's database is another one: begin again without a cursor.
   */
  async changes(
    cursor: string | undefined,
    options: { kinds?: readonly ChangeKind[]; limit?: number; signal?: AbortSignal } = {},
  ): Promise<AnswerOf<"listChanges">> {
    const { kinds, limit, signal } = options;
    const query = { cursor, kinds: kinds?.join(","), limit };
    const request = { query, signal };
    if (cursor !== undefined) {
      const reply = await this.callIfChanged("listChanges", request, `"${cursor}"`);
      if (reply === undefined) return { changes: [], next_cursor: cursor, has_more: false };
      return this.#checkPage(reply.value, cursor);
    }
    return this.#checkPage((await this.call("listChanges", request)).value, cursor);
  }

  #checkPage(page: AnswerOf<"listChanges">, cursor: string | undefined) {
    // A hub that always has more and never moves on would keep a reader busy for ever.
    if (page.has_more && (page.changes.length === 0 || page.next_cursor === cursor)) {
      throw answerInvalid("promises more changes and does not move on");
    }
    for (const change of page.changes) this.revisions.check(change);
    return page;
  }

  /**
   * The change feed as it happens, from `cursor` on, until `signal` aborts. A lost connection is
   * opened again after the last change seen. Throws what opening again cannot cure.
   */
  async *subscribe(
    cursor: string | undefined,
    options: { kinds?: readonly ChangeKind[]; signal: AbortSignal },
  ): AsyncGenerator<FeedEvent> {
    const { kinds, signal } = options;
    let failures = 0;
    while (!signal.aborted) {
      try {
        for await (const event of this.#listen(cursor, kinds, signal)) {
          if (event.type === "change") cursor = event.change.cursor;
          if (event.type !== "lost") failures = 0;
          yield event;
        }
        if (!signal.aborted) throw unavailableStream();
      } catch (error) {
        if (signal.aborted) return;
        if (!(error instanceof TamqError) || !mayRepeat(error)) throw error;
        const retryInMs = RECONNECT_MS[Math.min(failures++, RECONNECT_MS.length - 1)]!;
        yield { type: "lost", error, retryInMs };
        await pause(this.#clock, retryInMs, signal);
      }
    }
  }

  async *#listen(
    cursor: string | undefined,
    kinds: readonly ChangeKind[] | undefined,
    signal: AbortSignal,
  ): AsyncGenerator<FeedEvent> {
    const query = new URLSearchParams();
    if (kinds !== undefined) query.set("kinds", kinds.join(","));
    const headers: Record<string, string> = { accept: "text/event-stream" };
    if (cursor !== undefined) headers["last-event-id"] = cursor;
    const opened = await this.#transport.stream({
      method: "GET",
      target: withQuery(routes.streamChanges.path, query),
      headers,
      body: undefined,
      timeoutMs: this.#timeoutMs,
      signal,
    });
    if (!("reader" in opened)) {
      throw opened.status < 400
        ? answerInvalid("is no stream of events")
        : failureOf(opened.status, opened.bytes);
    }
    yield { type: "connected" };
    const parser = new EventParser();
    const decoder = new TextDecoder("utf-8", { ignoreBOM: true });
    let silent = () => {};
    try {
      for (;;) {
        silent = this.#clock.after(this.#idleMs, opened.close);
        const { value } = await opened.reader.read().catch(() => ({ value: undefined }));
        silent();
        if (value === undefined) return;
        for (const event of parser.push(decoder.decode(value, { stream: true }))) {
          if (event.event !== "change") continue;
          const change = checkAnswer(changeSchema, parseText(event.data));
          this.revisions.check(change);
          yield { type: "change", change };
        }
      }
    } finally {
      silent();
      opened.close();
    }
  }

  async #call(
    name: Callable,
    request: Loose,
    known: string | undefined,
  ): Promise<Reply<Callable> | undefined> {
    const route: Route = routes[name];
    const headers: Record<string, string> = { accept: "application/json" };
    if (known !== undefined) headers["if-none-match"] = known;
    if (request.ifMatch !== undefined) {
      headers["if-match"] = request.ifMatch === "*" ? "*" : etag(request.ifMatch);
    }
    let body: string | undefined;
    if (route.body !== undefined) {
      headers["content-type"] = "application/json";
      // With a key of its own every change may be sent again when its answer is lost.
      body = JSON.stringify({ idempotency_key: newToken(this.#random), ...request.body });
    }
    const outgoing = {
      method: route.method,
      target: targetOf(route, request),
      headers,
      body,
      timeoutMs: this.#timeoutMs,
      signal: request.signal,
    };
    for (let attempt = 0;; attempt++) {
      try {
        return read(route, await this.#transport.exchange(outgoing), known);
      } catch (error) {
        const wait = this.#backoffMs[attempt];
        const again = error instanceof TamqError && mayRepeat(error) && wait !== undefined;
        if (!again) throw error;
        await pause(this.#clock, wait, request.signal);
        request.signal?.throwIfAborted();
      }
    }
  }
}

interface Loose {
  readonly params?: Readonly<Record<string, string>>;
  readonly query?: Readonly<Record<string, string | number | undefined>>;
  readonly body?: Readonly<Record<string, unknown>>;
  readonly ifMatch?: number | "*";
  readonly signal?: AbortSignal;
}

function read(route: Route, incoming: Incoming, known: string | undefined) {
  if (incoming.status === 304 && known !== undefined) return undefined;
  if (incoming.status >= 400) throw failureOf(incoming.status, incoming.bytes);
  if (incoming.status !== 200 && incoming.status !== 201) {
    throw answerInvalid(`has the status ${incoming.status}`);
  }
  const value = checkAnswer(route.response, parseJson(incoming.bytes));
  return { value, etag: incoming.headers.get("etag") ?? undefined } as Reply<Callable>;
}

/** Whether the same request may be sent once more and may then go through. */
function mayRepeat(error: TamqError): boolean {
  if (error.reason === "answer_invalid" || error.reason === "answer_too_large") return false;
  if (error.reason === "revision_regressed") return false;
  return error.code === "UNAVAILABLE" || error.code === "DEADLINE_EXCEEDED" ||
    error.code === "RESOURCE_EXHAUSTED";
}

function targetOf(route: Route, request: Loose): string {
  const path = route.path.replace(
    /\{(\w+)\}/g,
    (_, name: string) => encodeURIComponent(request.params?.[name] ?? ""),
  );
  const query = new URLSearchParams();
  for (const [key, value] of Object.entries(request.query ?? {})) {
    if (value !== undefined) query.set(key, String(value));
  }
  return withQuery(path, query);
}

function withQuery(path: string, query: URLSearchParams): string {
  return query.size === 0 ? path : `${path}?${query}`;
}

function unavailableStream(): TamqError {
  return new TamqError("UNAVAILABLE", "connection_lost", "the State Hub ended the stream", {
    hint: "it is opened again by itself",
  });
}
