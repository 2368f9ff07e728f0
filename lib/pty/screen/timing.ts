/** When the screen of an agent is looked at, milliseconds (B-06). */

/** A screen that stood still for so long is whole: agents paint what belongs together within it. */
export const SETTLE_MS = 150;
/** Looks again so soon when output waits or a frame is open … */
export const RETRY_MS = 25;
/** … and takes an open frame for a lost one after so long, as terminals do. */
export const FRAME_MS = 1000;
/** The last rows of a turn may be painted this much after its end was reported, on a loaded machine. */
export const LATE_MS = 2000;
/** While the agent works, the whole transcript is read so often at most: it costs milliseconds … */
const WORKING_READ_MS = 1000;
/** … and at rest so often while output goes on, which it does within so much time. */
const MOVING_READ_MS = 500;
export const MOVING_MS = 50;

export function readInterval(working: boolean, moving: boolean): number {
  return working ? WORKING_READ_MS : moving ? MOVING_READ_MS : SETTLE_MS;
}
