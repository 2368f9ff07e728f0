/**
 * When and how a broker becomes a newer program (B-17): that program is tried first, then a moment is
 * waited for at which nothing is under way, and what cannot be done is told and changes nothing.
 */
import { type Clock, within } from "./base/clock.ts";
import { displaySafe } from "./base/display.ts";
import { errorText } from "./base/errors.ts";
import type { Log } from "./base/log.ts";
import { type Handover, handOver, HANDOVER_FORMAT } from "./handover.ts";

export interface UpgradeOptions {
  readonly clock: Clock;
  readonly log: Log;
  /** Name of the profile, which the other program must know as well. */
  readonly profile: string;
  /** Why not now; undefined: nothing is under way. */
  readonly unfinished: () => string | undefined;
  /** All that the next program needs; asked in the very turn in which this one ends. */
  readonly state: () => Handover;
  /** Arguments of the broker that goes on, behind those that run `tamq`. */
  readonly argumentsFor: (word: string) => readonly string[];
  /** It stays as it is, and why. */
  readonly onFailed: (reason: string) => void;
}

/** A runtime starts and reads the whole program within a second; a loaded machine gets more. */
const CHECK_MS = 15_000;
/** Between two looks; the end of an attempt is looked at as it comes. */
const LOOK_MS = 10;
const MAX_REASON = 256;

export class Upgrade {
  readonly #o: UpgradeOptions;
  #asked = false;
  /** A moment is being waited for. */
  #program: readonly string[] | undefined;
  #why = "";
  #cancel = () => {};

  constructor(options: UpgradeOptions) {
    this.#o = options;
  }

  /** Becomes `program` within `waitMs` milliseconds after it was tried, or says why not. */
  async request(program: readonly string[], waitMs: number): Promise<void> {
    if (this.#asked) return this.#o.onFailed("an upgrade is under way");
    this.#asked = true;
    const refusal = await tryProgram(program, this.#o.profile, this.#o.clock);
    if (!this.#asked) return; // the worker has ended
    if (refusal !== undefined) return this.#fail(refusal);
    this.#program = program;
    const end = this.#o.clock.monotonic() + waitMs;
    const again = () => {
      this.look();
      if (this.#program === undefined) return;
      if (this.#o.clock.monotonic() >= end) return this.#fail(this.#why);
      this.#cancel = this.#o.clock.after(LOOK_MS, again);
    };
    again();
  }

  /** Something that was under way has ended: perhaps this is the moment. */
  look(): void {
    const program = this.#program;
    if (program === undefined) return;
    const why = this.#o.unfinished();
    if (why !== undefined) {
      this.#why = why;
      return;
    }
    try {
      this.#o.log.info("broker.upgrading");
      const argvFor = (word: string) => [...program, ...this.#o.argumentsFor(word)];
      handOver(this.#o.state(), argvFor, Deno.env.toObject());
    } catch (error) {
      this.#fail(errorText(error));
    }
  }

  /** The worker has ended: this process ends with it, as what it is. */
  stop(): void {
    this.#cancel();
    if (this.#asked) this.#fail("worker_exited");
  }

  #fail(reason: string): void {
    this.#asked = false;
    this.#program = undefined;
    this.#o.log.warn("broker.not_upgraded", { reason });
    this.#o.onFailed(displaySafe(reason).slice(0, MAX_REASON).toWellFormed());
  }
}

/** Whether that program starts, finds all its parts and goes on from our format; else why not. */
async function tryProgram(
  program: readonly string[],
  profile: string,
  clock: Clock,
): Promise<string | undefined> {
  let child: Deno.ChildProcess;
  try {
    child = new Deno.Command(program[0]!, {
      args: [...program.slice(1), "upgrade", "--check", `--profile=${profile}`],
      stdin: "null",
      stdout: "piped",
      stderr: "piped",
    }).spawn();
  } catch (error) {
    const absent = error instanceof Deno.errors.NotFound;
    return `cannot run ${program[0]}: ${absent ? "there is no such file" : errorText(error)}`;
  }
  const done = child.output();
  const output = await within(clock, CHECK_MS, done, () => undefined);
  if (output === undefined) {
    child.kill("SIGKILL");
    await done;
    return `${program[0]} did not start within ${CHECK_MS / 1000} seconds`;
  }
  const text = (bytes: Uint8Array) => new TextDecoder().decode(bytes).trim();
  if (!output.success) {
    const said = text(output.stderr).split("\n")[0] || `exit status ${output.code}`;
    return `${program[0]} does not run here: ${said}`;
  }
  try {
    const { formats, version } = JSON.parse(text(output.stdout));
    if (Array.isArray(formats) && formats.includes(HANDOVER_FORMAT)) return undefined;
    return `version ${version} does not go on from this one (format ${HANDOVER_FORMAT}): ` +
      "end the command in the window and start it again";
  } catch {
    return `${program[0]} is no tamq that can go on from this one`;
  }
}
