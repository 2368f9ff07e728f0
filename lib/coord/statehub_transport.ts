/** One request to a State Hub and its answer, over a Unix socket or HTTP, within time and size. */
import type { Clock } from "../base/clock.ts";
import { errorText, TamqError } from "../base/errors.ts";
import { newToken } from "../base/ids.ts";
import type { Random } from "../base/random.ts";
import { digest, PROOF_HEADER, ProofKey, sameSecret, writeCredentials } from "../hub/proof.ts";
import type { HubAddress } from "../hub/settings.ts";
import { readToken } from "../hub/token.ts";
import type { Orwell } from "../ipc/orwell.ts";
import { assertOurSocket } from "../ipc/socket_file.ts";
import { readBounded, readerUntil } from "./statehub_http.ts";

export interface TransportOptions {
  readonly address: HubAddress;
  /** Instead of the embedded hub's token: a credential of the configured route (K-16). */
  readonly bearer?: () => Promise<string> | string;
  readonly clock: Clock;
  readonly random: Random;
  readonly orwell?: Orwell;
  readonly maxAnswerBytes: number;
}

export interface Outgoing {
  readonly method: string;
  /** Path and query. */
  readonly target: string;
  readonly headers: Record<string, string>;
  readonly body: string | undefined;
  /** For the whole exchange; for a stream, until its first byte is due. */
  readonly timeoutMs: number;
  readonly signal: AbortSignal | undefined;
}

export interface Incoming {
  readonly status: number;
  readonly headers: Headers;
  readonly bytes: Uint8Array;
}

export interface EventStream {
  readonly reader: ReadableStreamDefaultReader<Uint8Array<ArrayBuffer>>;
  /** Ends the connection; a read under way then says "done". */
  close(): void;
}

const encoder = new TextEncoder();

export class HubTransport {
  readonly #options: TransportOptions;
  readonly #client: Deno.HttpClient;
  readonly #base: URL;

  constructor(options: TransportOptions) {
    this.#options = options;
    const { address } = options;
    this.#client = "unix" in address
      ? Deno.createHttpClient({ proxy: { transport: "unix", path: address.unix } })
      : Deno.createHttpClient({});
    this.#base = new URL("unix" in address ? "http://localhost" : address.base);
    if (this.#base.protocol !== "http:" && this.#base.protocol !== "https:") {
      throw new TamqError(
        "INVALID_ARGUMENT",
        "hub_address_invalid",
        "the State Hub's address is neither http nor https",
        { hint: "set STATEHUB_API_BASE to an address like http://127.0.0.1:8000" },
      );
    }
  }

  close(): void {
    this.#client.close();
  }

  /** Throws `hub_unavailable`, `no_answer`, `answer_too_large`, `hub_unproven`. */
  async exchange(outgoing: Outgoing): Promise<Incoming> {
    const open = await this.#open(outgoing);
    try {
      const { response, nonce } = open;
      const bytes = await readBounded(response.body, this.#options.maxAnswerBytes, open.signal);
      const { status } = response;
      this.#options.orwell?.see("hub.answer", { status, body: new TextDecoder().decode(bytes) });
      if (nonce !== undefined) await this.#checkProof(response, nonce, await digest(bytes));
      return { status: response.status, headers: response.headers, bytes };
    } catch (error) {
      throw open.explain(error);
    } finally {
      open.close();
    }
  }

  /** A stream of events; an error answer is returned as bytes. */
  async stream(outgoing: Outgoing): Promise<EventStream | Incoming> {
    const open = await this.#open(outgoing);
    let kept = false;
    try {
      const { response, nonce } = open;
      const events = response.ok &&
        (response.headers.get("content-type") ?? "").startsWith("text/event-stream");
      if (!events || response.body === null) {
        const bytes = await readBounded(response.body, this.#options.maxAnswerBytes, open.signal);
        if (nonce !== undefined) await this.#checkProof(response, nonce, await digest(bytes));
        return { status: response.status, headers: response.headers, bytes };
      }
      if (nonce !== undefined) await this.#checkProof(response, nonce, "events");
      open.keep();
      kept = true;
      return { reader: readerUntil(response.body, open.signal), close: open.abort };
    } catch (error) {
      throw open.explain(error);
    } finally {
      if (!kept) open.close();
    }
  }

  async #open(outgoing: Outgoing) {
    const { clock, address } = this.#options;
    if ("unix" in address) assertOurSocket(address.unix);
    const url = this.#url(outgoing.target);
    const { headers, nonce } = await this.#authorise(outgoing, url);
    const { method, body } = outgoing;
    this.#options.orwell?.see("hub.request", { method, url: url.href, headers, body });
    const controller = new AbortController();
    let late = false;
    const cancel = clock.after(outgoing.timeoutMs, () => {
      late = true;
      controller.abort();
    });
    const onAbort = () => controller.abort();
    outgoing.signal?.throwIfAborted();
    outgoing.signal?.addEventListener("abort", onAbort);
    const keep = () => cancel();
    const close = () => {
      cancel();
      outgoing.signal?.removeEventListener("abort", onAbort);
    };
    const explain = (error: unknown): unknown => {
      if (outgoing.signal?.aborted) return outgoing.signal.reason;
      if (late) return noAnswer(outgoing.timeoutMs);
      return error instanceof TamqError ? error : unavailable(address, error);
    };
    try {
      const response = await fetch(url, {
        method: outgoing.method,
        headers,
        body: outgoing.body,
        client: this.#client,
        signal: controller.signal,
        // What a redirect leads to has proved nothing.
        redirect: "manual",
      });
      const abort = () => {
        close();
        controller.abort();
      };
      return { response, nonce, signal: controller.signal, close, keep, abort, explain };
    } catch (error) {
      close();
      throw explain(error);
    }
  }

  #url(target: string): URL {
    const url = new URL(this.#base);
    const [path, query] = target.split("?");
    url.pathname = url.pathname.replace(/\/$/, "") + path;
    url.search = query === undefined ? "" : `?${query}`;
    return url;
  }

  async #authorise(outgoing: Outgoing, url: URL) {
    const { address, bearer, clock, random } = this.#options;
    const headers: Record<string, string> = { ...outgoing.headers };
    if ("unix" in address) return { headers, nonce: undefined };
    if (bearer !== undefined) {
      headers.authorization = `Bearer ${await bearer()}`;
      return { headers, nonce: undefined };
    }
    if (address.tokenFile === undefined) return { headers, nonce: undefined };
    const nonce = newToken(random);
    const timeMs = Math.floor(clock.now());
    const mac = await (await this.#key()).request({
      method: outgoing.method,
      host: url.host,
      target: url.pathname + url.search,
      timeMs,
      nonce,
      bodyDigest: await digest(encoder.encode(outgoing.body ?? "")),
    });
    headers.authorization = writeCredentials({ timeMs, nonce, mac });
    return { headers, nonce };
  }

  /** Read at each use: the token may be made anew while we run. */
  async #key(): Promise<ProofKey> {
    const { address } = this.#options;
    return await ProofKey.of(readToken((address as { tokenFile: string }).tokenFile));
  }

  async #checkProof(response: Response, nonce: string, bodyDigest: string): Promise<void> {
    const given = response.headers.get(PROOF_HEADER) ?? "";
    const key = await this.#key();
    const expected = await key.answer({ nonce, status: response.status, bodyDigest });
    if (sameSecret(given, expected)) return;
    throw new TamqError(
      "UNAUTHENTICATED",
      "hub_unproven",
      "what answers at the State Hub's address does not know the token",
      {
        hint:
          "another program may have taken the port; if a hub other than the embedded one is meant, " +
          "remove the embedded one's token file",
      },
    );
  }
}

function noAnswer(ms: number): TamqError {
  return new TamqError(
    "DEADLINE_EXCEEDED",
    "no_answer",
    `the State Hub did not answer within ${ms / 1000} seconds`,
    { hint: "the outcome is unknown; repeat it with the same idempotency key" },
  );
}

function unavailable(address: HubAddress, cause: unknown): TamqError {
  const where = "unix" in address ? address.unix : new URL(address.base).host;
  return new TamqError("UNAVAILABLE", "hub_unavailable", `no State Hub answers on ${where}`, {
    hint: `start one with: tamq hub serve --detach (${errorText(cause).slice(0, 200)})`,
    cause,
  });
}
