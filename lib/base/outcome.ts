/** Expected results are values, not exceptions: `Ok` or `Refused`. */
export interface Ok<T> {
  readonly ok: true;
  readonly value: T;
}
export interface Refused<E> {
  readonly ok: false;
  readonly error: E;
}
export type Outcome<T, E> = Ok<T> | Refused<E>;

export function ok<T>(value: T): Ok<T> {
  return { ok: true, value };
}
export function refused<E>(error: E): Refused<E> {
  return { ok: false, error };
}
