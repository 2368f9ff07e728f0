/** The library: talking to a running message service, and the types of what it says. */
export {
  FAILURE_CODES,
  type FailureCode,
  RETRY_RULES,
  type RetryRule,
  TamqError,
  type WireError,
} from "./lib/base/errors.ts";
export { type Env, loadSettings, type Settings } from "./lib/config.ts";
export { call, type CallOptions, findSocket } from "./lib/client.ts";
export {
  CAPABILITIES,
  negotiate,
  parseVersion,
  PROTOCOL,
  requireService,
  type Version,
} from "./lib/protocol/handshake.ts";
export type { OperationName, RequestOf, ResponseOf } from "./lib/protocol/operations.ts";
export type {
  WireAttachment,
  WireAttempt,
  WireEndpoint,
  WireMessage,
  WireStatus,
} from "./lib/protocol/schema.ts";
export { MAX_BODY_BYTES, MAX_METADATA_BYTES } from "./lib/model/body.ts";
export { type MessageState, type Provenance, PROVENANCES, STATES } from "./lib/model/message.ts";
export { type Mode, MODES } from "./lib/model/endpoint.ts";
export { CoordinationEngineAdapter, type WakeAck, type WakeRequest } from "./lib/coord/adapter.ts";
export type { Checkpoint } from "./lib/model/checkpoint.ts";
export type { WorkerTrigger } from "./lib/model/trigger.ts";
