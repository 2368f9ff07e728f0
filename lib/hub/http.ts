/**
 * One HTTP request to one answer: guard, route, bounds, validation, failures. Knows no record.
 */
import { type Clock, within } from "../base/clock.ts";
import { errorText, TamqError } from "../base/errors.ts";
import type { Log } from "../base/log.ts";
import { probe } from "../base/probe.ts";
import type { Orwell } from "../ipc/orwell.ts";
import type { Route } from "./api.ts";
import type { Caller } from "./authority.ts";
import { statusOf } from "./errors.ts";
import type { Guard, Sign } from "./guard.ts";
import type { AnsweringRoute, Handlers } from "./handlers.ts";
import { digest, PROOF_HEADER } from "./proof.ts";
import { LIMITS } from "./schema.ts";
import type { EventStreams } from "./events.ts";
import { findRoute, readIfMatch, readParts } from "./request.ts";

export interface AppOptions {
  readonly handlers: Handlers;
  readonly events: EventStreams;
  readonly clock: Clock;
  readonly log: Log;
  readonly orwell?: Orwell;
  /** Requests being worked on at once, over all listeners. */
  readonly maxRequests?: number;
  /** How long a request's body may take to arrive, milliseconds. */
  readonly bodyMs?: number;
}

interface Plain {
  readonly status: number;
  readonly text: string;
  readonly headers: Record<string, string>;
}

const SECURITY_HEADERS = {
  // Compressed by the runtime (before 2.9 it does so unasked), an answer would lose its strong ETag.
  "cache-control": "no-store, no-transform",
  "x-content-type-options": "nosniff",
  "content-security-policy": "default-src 'none'",
} as const;

export class HubApp {
  readonly #options: AppOptions;
  #active = 0;
  #stopping = false;

  constructor(options: AppOptions) {
    this.#options = options;
  }

  /** Requests under way. */
  get active(): number {
    return this.#active;
  }

  /** From now on every new request is refused with `shutting_down`. */
  stop(): void {
    this.#stopping = true;
  }

  /** Never throws: every failure is an answer. */
  async handle(request: Request, guard: Guard): Promise<Response> {
    this.#active++;
    let sign: Sign | undefined;
    try {
      const caller = guard.admit(request);
      if (this.#stopping) throw shuttingDown();
      if (this.#active > (this.#options.maxRequests ?? 256)) throw tooMany();
      const body = await this.#readBody(request);
      sign = await guard.authenticate(request, body);
      this.#options.orwell?.see("request", {
        method: request.method,
        url: request.url,
        headers: Object.fromEntries(request.headers),
        body: new TextDecoder().decode(body),
      });
      return await this.#perform(request, body, caller, sign);
    } catch (error) {
      return await this.#finish(this.#failure(request, error), sign);
    } finally {
      this.#active--;
    }
  }

  async #perform(
    request: Request,
    body: Uint8Array<ArrayBuffer>,
    caller: Caller,
    sign: Sign | undefined,
  ): Promise<Response> {
    if (request.url.length > LIMITS.urlBytes) {
      throw new TamqError("INVALID_ARGUMENT", "request_invalid", "the address is too long");
    }
    const url = new URL(request.url);
    const { name, route, path } = findRoute(request.method, url.pathname);
    const parts = readParts(route, path, url.searchParams, request.headers, body);
    if (name === "streamChanges") {
      const query = parts.query as { cursor?: string; kinds?: string };
      const last = request.headers.get("last-event-id");
      const stream = this.#options.events.open({ ...query, ...(last && { cursor: last }) });
      const headers = new Headers({ ...SECURITY_HEADERS, "content-type": "text/event-stream" });
      if (sign !== undefined) headers.set(PROOF_HEADER, await sign(200, "events"));
      return new Response(stream, { headers });
    }
    const ifMatch = readIfMatch(route, request.headers.get("if-match"));
    const answer = await this.#call(name, route, { ...parts, ifMatch }, caller);
    const headers: Record<string, string> = {};
    if (answer.etag !== undefined) headers.etag = answer.etag;
    const unchanged = route.answers === "etag" && answer.etag !== undefined &&
      answer.etag === request.headers.get("if-none-match")?.replace(/^W\//, "");
    if (unchanged) return await this.#finish({ status: 304, text: "", headers }, sign);
    const status = answer.repeated === true ? 200 : route.status;
    return await this.#finish({ status, text: JSON.stringify(answer.value), headers }, sign);
  }

  async #call(
    name: AnsweringRoute,
    route: Route,
    parts: { params: unknown; query: unknown; body: unknown; ifMatch: number | undefined },
    caller: Caller,
  ) {
    const asked = route.method === "GET"
      ? ""
      : await digest(new TextEncoder().encode(JSON.stringify([name, parts])));
    // The table types each handler by its route; the lookup by a variable name loses that.
    const handler = this.#options.handlers[name] as (input: unknown) => Promise<{
      value: unknown;
      etag?: string;
      repeated?: boolean;
    }>;
    const answer = await handler({ ...parts, caller, digest: asked });
    probe("hub.answered", name);
    return answer;
  }

  async #readBody(request: Request): Promise<Uint8Array<ArrayBuffer>> {
    if (request.body === null) return new Uint8Array(0);
    const reader = request.body.getReader();
    const { clock, bodyMs = 10_000 } = this.#options;
    try {
      return await within(clock, bodyMs, collect(reader), () => {
        throw new TamqError(
          "DEADLINE_EXCEEDED",
          "request_timeout",
          `the request did not arrive within ${bodyMs / 1000} seconds`,
        );
      });
    } catch (error) {
      await reader.cancel().catch(() => {});
      throw error;
    }
  }

  #failure(request: Request, error: unknown): Plain {
    const known = error instanceof TamqError ? error : new TamqError(
      "UNAVAILABLE",
      "internal_error",
      "the hub failed to do this",
      { hint: "the hub's log says more; the same idempotency key may be sent again" },
    );
    if (known !== error) {
      this.#options.log.error("request.failed", {
        method: request.method,
        reason: errorText(error),
      });
    } else if (known.code === "UNAUTHENTICATED" || known.code === "PERMISSION_DENIED") {
      this.#options.log.warn("request.refused", { reason: known.reason });
    }
    const headers: Record<string, string> = {};
    if (known.code === "UNAUTHENTICATED") headers["www-authenticate"] = "Bearer";
    return { status: statusOf(known), text: JSON.stringify({ error: known.toWire() }), headers };
  }

  async #finish({ status, text, headers }: Plain, sign: Sign | undefined): Promise<Response> {
    const bytes = new TextEncoder().encode(text);
    this.#options.orwell?.see("answer", { status, headers, body: text });
    const all = new Headers({ ...SECURITY_HEADERS, ...headers });
    if (status !== 304) all.set("content-type", "application/json");
    if (sign !== undefined) all.set(PROOF_HEADER, await sign(status, await digest(bytes)));
    return new Response(status === 304 ? null : bytes, { status, headers: all });
  }
}

async function collect(
  reader: ReadableStreamDefaultReader<Uint8Array>,
): Promise<Uint8Array<ArrayBuffer>> {
  const chunks: Uint8Array[] = [];
  let length = 0;
  for (;;) {
    const { done, value } = await reader.read();
    if (done) break;
    length += value.length;
    if (length > LIMITS.requestBytes) {
      throw new TamqError(
        "INVALID_ARGUMENT",
        "request_too_large",
        `the request has more than ${LIMITS.requestBytes} bytes`,
        { hint: "put long text in a file of the repository and name it" },
      );
    }
    chunks.push(value);
  }
  const bytes = new Uint8Array(length);
  let at = 0;
  for (const chunk of chunks) {
    bytes.set(chunk, at);
    at += chunk.length;
  }
  return bytes;
}

function shuttingDown(): TamqError {
  return new TamqError("UNAVAILABLE", "shutting_down", "the hub is shutting down", {
    hint: "start it with: tamq hub serve --detach",
  });
}

function tooMany(): TamqError {
  return new TamqError("RESOURCE_EXHAUSTED", "too_many_requests", "the hub has too much to do", {
    hint: "try again in a moment",
  });
}
