/** A screen observer under a clock that the test moves, and the recordings to feed it. */
import { builtInProfile } from "../../lib/pty/profiles/catalog.ts";
import type { AgentProfile } from "../../lib/pty/profiles/schema.ts";
import { ExpectedEchoes } from "../../lib/pty/echo.ts";
import type { Block } from "../../lib/pty/lines.ts";
import { ModeTracker } from "../../lib/pty/modes.ts";
import {
  type KeptScreen,
  type ScreenNotice,
  ScreenObserver,
  type ScreenSize,
} from "../../lib/pty/screen.ts";
import { FakeClock } from "./clock.ts";

export interface Observed {
  readonly observer: ScreenObserver;
  readonly clock: FakeClock;
  readonly echoes: ExpectedEchoes;
  readonly blocks: Block[];
  readonly notices: ScreenNotice[];
  /** What the program's status queries were to be answered. */
  readonly answers: string[];
  /** Feeds text or bytes and waits until the model has read them; time stands still. */
  feed(output: string | Uint8Array): Promise<void>;
  /** Lets the screen stand still until every commit is done. */
  settle(): void;
  /**
   * Another observer goes on in place of this one, as after an upgrade; false, and nothing is done,
   * where the screen or a sequence is unfinished.
   */
  replace(): Promise<boolean>;
}

export interface ObserveOptions {
  /** A built-in profile's name, or a profile. */
  readonly profile: string | AgentProfile;
  readonly size?: ScreenSize;
  readonly names?: readonly string[];
}

/** Runs `body` with an observer, which is closed afterwards also when the body fails. */
export async function observing(
  options: ObserveOptions,
  body: (seen: Observed) => Promise<void>,
): Promise<void> {
  const { profile } = options;
  const clock = new FakeClock();
  const echoes = new ExpectedEchoes();
  const blocks: Block[] = [];
  const notices: ScreenNotice[] = [];
  const answers: string[] = [];
  const open = async (kept?: KeptScreen) =>
    await ScreenObserver.open({
      profile: typeof profile === "string" ? (await builtInProfile(profile))! : profile,
      clock,
      echoes,
      size: options.size ?? { columns: 80, rows: 24 },
      names: () => options.names ?? ["alpha", "beta", "b", "c"],
      onBlock: (block) => blocks.push(block),
      onNotice: (notice) => notices.push(notice),
      onStatusQuery: (answer) => answers.push(new TextDecoder().decode(answer)),
    }, kept);
  let observer = await open();
  const modes = new ModeTracker();
  const encoder = new TextEncoder();
  const seen: Observed = {
    get observer() {
      return observer;
    },
    clock,
    echoes,
    blocks,
    notices,
    answers,
    async feed(output) {
      const bytes = typeof output === "string" ? encoder.encode(output) : output;
      modes.feed(bytes);
      observer.push(bytes);
      await observer.drained();
    },
    async replace() {
      if (!modes.settled || observer.unfinished !== undefined) return false;
      const kept = JSON.parse(JSON.stringify(observer.save())) as KeptScreen;
      await observer.close();
      observer = await open(kept);
      return true;
    },
    settle: () => clock.advance(1000),
  };
  try {
    await body(seen);
  } finally {
    await observer.close();
  }
}

const FIXTURES = new URL("../fixtures/agents/", import.meta.url);

async function gunzip(name: string): Promise<Uint8Array<ArrayBuffer>> {
  const file = await Deno.open(new URL(name, FIXTURES));
  const stream = file.readable.pipeThrough(new DecompressionStream("gzip"));
  return new Uint8Array(await new Response(stream).arrayBuffer());
}

/** What one agent wrote to its terminal, byte for byte. */
export function recording(name: string): Promise<Uint8Array<ArrayBuffer>> {
  return gunzip(`${name}.raw.gz`);
}

/** One read of so many bytes after so many milliseconds, or a change of the terminal's size. */
export type Moment =
  | readonly [ms: number, bytes: number]
  | readonly [ms: number, cols: number, rows: number];

/** Plays a recording in its own time, sizes included. */
export async function replay(
  seen: Observed,
  name: string,
  onMoment: () => Promise<unknown> = async () => {},
): Promise<void> {
  const bytes = await recording(name);
  const timeline: Moment[] = JSON.parse(
    new TextDecoder().decode(await gunzip(`${name}.timeline.json.gz`)),
  );
  let at = 0;
  let now = 0;
  for (const moment of timeline) {
    if (moment[0] > now) seen.clock.advance(moment[0] - now);
    now = moment[0];
    if (moment.length === 3) seen.observer.resize({ columns: moment[1], rows: moment[2] });
    else {
      await seen.feed(bytes.subarray(at, at + moment[1]));
      at += moment[1];
    }
    await onMoment();
  }
  seen.settle();
}
