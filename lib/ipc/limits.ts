/** Bounds of a listening socket, so that no client can take the service from the others (T-22). */

export interface Limits {
  /** Open connections, delivery streams among them. */
  readonly connections: number;
  /** A request line, bytes. 8 KiB of body may grow sixfold by JSON escapes. */
  readonly requestBytes: number;
  /** The whole first request is due within this time; a byte now and then does not extend it. */
  readonly requestMs: number;
  /** A client that does not read is dropped after this time. */
  readonly writeMs: number;
  /** An answer line, bytes. */
  readonly answerBytes: number;
}

export const LIMITS: Limits = Object.freeze({
  connections: 512,
  requestBytes: 64 * 1024,
  requestMs: 5000,
  writeMs: 5000,
  answerBytes: 1 << 20,
});
