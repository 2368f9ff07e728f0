/** How far a long command has come, on a terminal's standard error. */
import type { CliContext } from "./context.ts";

/** A command that is done sooner shows nothing. */
const QUIET_MS = 1000;
const EVERY_MS = 250;

export interface Progress {
  /** `text` replaces what stands there. */
  show(text: () => string): void;
  /** Clears the line. */
  end(): void;
}

/** Silent unless standard error is a terminal, and nothing else writes there. */
export function progress(context: CliContext, outputToTerminal: boolean): Progress {
  const began = context.clock.monotonic();
  let last = began + QUIET_MS - EVERY_MS;
  let shown = false;
  const visible = context.stderrIsTerminal() && !outputToTerminal;
  const write = (text: string) => context.process.stderr.write(`\r${text}\u001b[K`);
  return {
    show(text) {
      const now = context.clock.monotonic();
      if (!visible || now - last < EVERY_MS) return;
      last = now;
      shown = true;
      write(text());
    },
    end() {
      if (shown) context.process.stderr.write("\r\u001b[K");
      shown = false;
    },
  };
}

/** 1,234,567 */
export function grouped(count: number): string {
  return String(count).replace(/\B(?=(\d{3})+$)/g, ",");
}

/** `1 message`, `1,234 messages` */
export function countedMessages(count: number): string {
  return `${grouped(count)} ${count === 1 ? "message" : "messages"}`;
}
