/** Bounds of a listening socket, so that no client can take the service from the others (T-22). */

export interface Limits {
  /** Open connections, delivery streams among them. */
  readonly connections: number;
  /** Connections that have not sent their request yet and may stay beyond `silentMs`. */
  readonly silent: number;
  /**
   * With more silent ones than that, or no place left, the one silent longest is dropped after this
   * time: whoever connects and says nothing cannot keep the others out. Clients that a busy machine
   * holds up between connecting and writing need the time.
   */
  readonly silentMs: number;
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
  silent: 64,
  silentMs: 1000,
  requestBytes: 64 * 1024,
  requestMs: 5000,
  writeMs: 5000,
  answerBytes: 1 << 20,
});
