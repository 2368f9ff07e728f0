/** A line observer whose findings are values. */
import { ExpectedEchoes } from "../../lib/pty/echo.ts";
import { LinesObserver } from "../../lib/pty/lines.ts";
import { ModeTracker } from "../../lib/pty/modes.ts";

export interface Observed {
  readonly blocks: { target: string; body: string }[];
  readonly refusals: { target: string; reason: string }[];
}

export class ObserverRig implements Observed {
  readonly blocks: { target: string; body: string }[] = [];
  readonly refusals: { target: string; reason: string }[] = [];
  readonly echoes = new ExpectedEchoes();
  readonly modes = new ModeTracker();
  readonly observer: LinesObserver;
  now = 0;
  shell = false;

  constructor(names: readonly string[] = ["alpha", "beta", "be", "gam:ma", "with space"]) {
    this.observer = new LinesObserver({
      modes: this.modes,
      echoes: this.echoes,
      names: () => names,
      now: () => this.now,
      promptEndsBlock: () => this.shell,
      onBlock: (block) => this.blocks.push(block),
      onRefusal: ({ target, reason }) => this.refusals.push({ target, reason }),
    });
  }

  feed(text: string | Uint8Array): this {
    this.observer.feed(typeof text === "string" ? new TextEncoder().encode(text) : text);
    return this;
  }
  get bodies(): string[] {
    return this.blocks.map(({ target, body }) => `${target}|${body}`);
  }
}
