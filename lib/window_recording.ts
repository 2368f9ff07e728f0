/** The recording of one window, if the operator asked for one (B-15): begun, announced, ended. */
import type { Clock } from "./base/clock.ts";
import { errorText } from "./base/errors.ts";
import { systemRandom } from "./base/random.ts";
import type { Settings } from "./config.ts";
import { Recording } from "./pty/recording.ts";
import { createRecording } from "./pty/recording_file.ts";
import type { Tap } from "./pty/relay.ts";
import { getTermios, type TerminalSize } from "./pty_ffi.ts";

/** `input`: what is typed as well. */
export type RecordWish = "output" | "input";

export interface WindowRecordingOptions {
  readonly wish: RecordWish | undefined;
  readonly repo: string;
  readonly settings: Pick<Settings, "recordingsDir">;
  readonly size: TerminalSize;
  readonly env: (name: string) => string | undefined;
  readonly clock: Clock;
}

export class WindowRecording {
  #recording: Recording | undefined;
  #master = -1;
  #trouble: string | undefined;
  #told: ((trouble: string) => void) | undefined;

  /** Never throws: without a recording the window works all the same, and says so. */
  constructor(options: WindowRecordingOptions) {
    const { wish, repo, clock, size, env } = options;
    if (wish === undefined) return;
    try {
      const file = createRecording(
        options.settings.recordingsDir,
        repo,
        clock.now(),
        systemRandom,
      );
      this.#recording = new Recording({
        file,
        title: repo,
        size,
        env,
        input: wish === "input",
        secret: () => readsSecret(this.#master),
        clock,
        onStopped: (why) => this.#tell(`the recording of this window ended: ${why}`),
      });
    } catch (error) {
      this.#tell(`this window is NOT recorded: ${errorText(error)}`);
    }
  }

  get active(): boolean {
    return this.#recording?.active === true;
  }

  /** Something is not written yet. */
  get busy(): boolean {
    return this.#recording?.busy === true;
  }

  /** For the relay, once the worker's terminal is there. */
  tap(master: number): { readonly tap?: Tap } {
    this.#master = master;
    return this.#recording === undefined ? {} : { tap: this.#recording };
  }

  /** `told` gets what went wrong, before now or later. */
  attend(told: (trouble: string) => void): void {
    this.#told = told;
    if (this.#trouble !== undefined) told(this.#trouble);
  }

  #tell(trouble: string): void {
    this.#trouble = trouble;
    this.#told?.(trouble);
  }

  async close(): Promise<void> {
    await this.#recording?.close();
  }
}

/** A gathered line without echo: a password prompt. */
function readsSecret(master: number): boolean {
  const termios = getTermios(master);
  return termios === undefined || (termios.canonical && !termios.echo);
}
