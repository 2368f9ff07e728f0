/**
 * Generated services over grpc-js: one place where requests become messages, failures become
 * statuses with details, and statuses become failures again (G-01).
 */
import { Buffer } from "node:buffer";
import grpc from "@grpc/grpc-js";
import {
  create,
  type DescMessage,
  type DescMethodUnary,
  type DescService,
  fromBinary,
  type MessageInitShape,
  type MessageShape,
  toBinary,
} from "@bufbuild/protobuf";
import { anyPack, anyUnpack } from "@bufbuild/protobuf/wkt";
import { type Clock, systemClock } from "../base/clock.ts";
import { errorText, TamqError } from "../base/errors.ts";
import { codeOfStatus, FAILURES, fromFailure, toFailure } from "./failure.ts";
import { FailureSchema, RpcStatusSchema } from "./gen/common_pb.ts";
import { guardHttp2 } from "./http2_guard.ts";
import type { Peer } from "./identity.ts";

const DETAILS = "grpc-status-details-bin";
/** Prompts have 8 KiB; nothing of the contract comes near this. */
const MAX_MESSAGE_BYTES = 256 << 10;

type Unary<S extends DescService> = {
  [K in keyof S["method"]]: S["method"][K] extends { input: infer I; output: infer O }
    ? I extends DescMessage ? O extends DescMessage ? { input: I; output: O } : never : never
    : never;
};

/** What handlers know of a call beside its message. */
export interface CallContext {
  readonly peer: Peer;
}

/** An implementation of every operation of a service; typed by its descriptor. */
export type Handlers<S extends DescService> = {
  [K in keyof Unary<S>]: (
    request: MessageShape<Unary<S>[K]["input"]>,
    context: CallContext,
  ) => Promise<MessageInitShape<Unary<S>[K]["output"]>>;
};

/** A client of a service; each call has a deadline. */
export type Client<S extends DescService> = {
  [K in keyof Unary<S>]: (
    request: MessageInitShape<Unary<S>[K]["input"]>,
    options?: { readonly deadlineMs?: number },
  ) => Promise<MessageShape<Unary<S>[K]["output"]>>;
};

function methods(service: DescService): [string, DescMethodUnary][] {
  return Object.entries(service.method).map(([name, method]) => {
    if (method.methodKind !== "unary") throw new Error(`${method.name}: only unary calls`);
    return [name, method as DescMethodUnary];
  });
}

function definition(service: DescService): grpc.ServiceDefinition {
  const entries = methods(service).map(([name, method]) => {
    const codec = (schema: DescMessage) => ({
      write: (message: MessageShape<DescMessage>) => Buffer.from(toBinary(schema, message)),
      read: (bytes: Uint8Array) => fromBinary(schema, bytes),
    });
    const [input, output] = [codec(method.input), codec(method.output)];
    return [name, {
      path: `/${service.typeName}/${method.name}`,
      requestStream: false,
      responseStream: false,
      requestSerialize: input.write,
      requestDeserialize: input.read,
      responseSerialize: output.write,
      responseDeserialize: output.read,
    }] as const;
  });
  return Object.fromEntries(entries) as grpc.ServiceDefinition;
}

/** A failure as the status of a call, with its details for every gRPC client. */
export function toStatus(error: unknown): Partial<grpc.StatusObject> {
  // What is no failure of ours is a bug here: whether it applied is in doubt.
  const known = error instanceof TamqError
    ? error
    : new TamqError("UNAVAILABLE", "internal", "internal error; see the log of this process");
  const { status } = FAILURES[known.code];
  const details = create(RpcStatusSchema, {
    code: status,
    message: known.message,
    details: [anyPack(FailureSchema, toFailure(known))],
  });
  const metadata = new grpc.Metadata();
  metadata.set(DETAILS, Buffer.from(toBinary(RpcStatusSchema, details)));
  return { code: status, details: known.message, metadata };
}

/** A failed call as our failure; of a peer that sends no details, by its status alone. */
export function fromStatus(error: Partial<grpc.StatusObject>, address = "the peer"): TamqError {
  const [bytes] = error.metadata?.get(DETAILS) ?? [];
  if (bytes instanceof Uint8Array) {
    try {
      for (const any of fromBinary(RpcStatusSchema, bytes).details) {
        const failure = anyUnpack(any, FailureSchema);
        const known = failure && fromFailure(failure);
        if (known !== undefined) return known;
      }
    } catch {
      // Not ours; the status itself says enough.
    }
  }
  const code = codeOfStatus(error.code ?? 2);
  const what = error.details?.trim().replace(/\s*Resolution note:\s*$/, "");
  return new TamqError(
    code,
    "rpc_failed",
    `${address}: ${what || "the call failed without a word"}`,
    {
      hint: "see that it runs there, and that both sides have valid certificates of one fleet",
    },
  );
}

export interface ServeOptions {
  readonly credentials: grpc.ServerCredentials;
  /** HOST:PORT; port 0 picks one. */
  readonly address: string;
  /** Throws for a peer that may not speak to any handler (G-16). */
  readonly admit: (certificate: unknown) => Peer;
  readonly clock?: Clock;
  readonly onError: (method: string, error: unknown) => void;
}

export interface RpcServer {
  readonly port: number;
  /** Ends the listening; what runs may finish until `graceMs` are over. */
  stop(graceMs: number): Promise<void>;
}

export class ServerBuilder {
  readonly #server = new grpc.Server({
    "grpc.max_receive_message_length": MAX_MESSAGE_BYTES,
    "grpc.max_concurrent_streams": 256,
  });
  readonly #options: ServeOptions;

  constructor(options: ServeOptions) {
    guardHttp2();
    this.#options = options;
  }

  add<S extends DescService>(service: S, handlers: Handlers<S>): this {
    const table: Record<string, grpc.handleUnaryCall<unknown, unknown>> = {};
    for (const [name, method] of methods(service)) {
      const handler = (handlers as Record<string, (r: never, c: CallContext) => Promise<object>>)[
        name
      ];
      if (handler === undefined) throw new Error(`${method.name} has no handler`);
      table[name] = (call, answer) => {
        void this.#answer(method, call, handler, answer);
      };
    }
    this.#server.addService(definition(service), table);
    return this;
  }

  async #answer(
    method: DescMethodUnary,
    call: grpc.ServerUnaryCall<unknown, unknown>,
    handler: (request: never, context: CallContext) => Promise<object>,
    answer: grpc.sendUnaryData<unknown>,
  ): Promise<void> {
    try {
      const peer = this.#options.admit(call.getAuthContext()?.sslPeerCertificate);
      const response = await handler(call.request as never, { peer });
      answer(null, create(method.output, response as MessageInitShape<DescMessage>));
    } catch (error) {
      if (!(error instanceof TamqError)) this.#options.onError(method.name, error);
      answer(toStatus(error));
    }
  }

  async start(): Promise<RpcServer> {
    const { address, credentials } = this.#options;
    const port = await new Promise<number>((resolve, reject) => {
      this.#server.bindAsync(address, credentials, (error, bound) => {
        if (error === null) resolve(bound);
        else reject(unusable(address, error));
      });
    });
    return {
      port,
      stop: async (graceMs) => {
        let cancel = () => {};
        await new Promise<void>((resolve) => {
          cancel = (this.#options.clock ?? systemClock).after(graceMs, () => {
            this.#server.forceShutdown();
            resolve();
          });
          this.#server.tryShutdown(() => resolve());
        });
        cancel();
      },
    };
  }
}

/** Calls to one address; keeps one connection and says {@link TamqError} for every failure. */
export function connect<S extends DescService>(
  service: S,
  address: string,
  credentials: grpc.ChannelCredentials,
): { readonly client: Client<S>; close(): void } {
  guardHttp2();
  const channel = new grpc.Client(address, credentials, {
    // The contract says what may be retried, not the channel.
    "grpc.enable_retries": 0,
    // Names are URIs in certificates; a host name is needed for the handshake alone.
    "grpc.ssl_target_name_override": "tamq.fleet",
    "grpc.use_local_subchannel_pool": 1,
    "grpc.initial_reconnect_backoff_ms": 100,
    "grpc.max_reconnect_backoff_ms": 2000,
    "grpc.keepalive_time_ms": 20_000,
    "grpc.max_receive_message_length": 4 << 20,
  });
  const table = definition(service);
  const entries = methods(service).map(([name, method]) => {
    const { path, requestSerialize, responseDeserialize } = table[name]!;
    return [
      name,
      (request: MessageInitShape<DescMessage>, options: { deadlineMs?: number } = {}) =>
        new Promise((resolve, reject) => {
          channel.makeUnaryRequest(
            path,
            requestSerialize,
            responseDeserialize,
            create(method.input, request),
            new grpc.Metadata(),
            { deadline: systemClock.now() + (options.deadlineMs ?? 10_000) },
            (error, response) => {
              if (error === null) resolve(response);
              else reject(fromStatus(error, address));
            },
          );
        }),
    ];
  });
  return { client: Object.fromEntries(entries) as Client<S>, close: () => channel.close() };
}

function unusable(address: string, cause: unknown): TamqError {
  return new TamqError("UNAVAILABLE", "address_unusable", `${address}: ${errorText(cause)}`, {
    hint: "name another address with --listen",
    cause,
  });
}
