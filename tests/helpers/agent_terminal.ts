/** A fake agent on a real terminal with the screen observer behind it, as a broker has it. */
import { systemClock } from "../../lib/base/clock.ts";
import type { Block } from "../../lib/pty/lines.ts";
import { type AgentProfile, parseProfile } from "../../lib/pty/profiles/schema.ts";
import { builtInProfile } from "../../lib/pty/profiles/catalog.ts";
import { type ScreenNotice, ScreenObserver } from "../../lib/pty/screen.ts";
import type { AgentStatus } from "../../lib/pty/status.ts";
import {
  closeFd,
  openPidfd,
  POLLIN,
  PollSet,
  reap,
  sendSignal,
  SIGKILL,
  spawnOnTerminal,
} from "../../lib/pty_ffi.ts";
import { TestTerminal } from "./pty.ts";
import { runtimeEnv } from "./runtime_env.ts";

const ROOT = new URL("../../", import.meta.url).pathname;

/** A profile for programs without marks, signs or reports. */
export const BARE: AgentProfile = parseProfile(`name = "bare"\nmatch = ["bare"]`, "bare");

export interface AgentEvent {
  readonly event: string;
  readonly text: string;
}

export class AgentTerminal implements AsyncDisposable {
  private constructor(
    readonly terminal: TestTerminal,
    readonly observer: ScreenObserver,
    readonly blocks: readonly Block[],
    readonly notices: readonly ScreenNotice[],
    readonly pid: number,
    readonly log: string,
  ) {}

  /** Starts `tests/agents/fake_NAME.ts`; `profile` names a built-in one, `""` the bare one. */
  static async start(
    name: string,
    profile: string,
    dir: string,
    options: readonly string[] = [],
  ): Promise<AgentTerminal> {
    const log = `${dir}/${name}`;
    const terminal = new TestTerminal({ rows: 24, columns: 80 });
    const blocks: Block[] = [];
    const notices: ScreenNotice[] = [];
    const observer = await ScreenObserver.open({
      profile: profile === "" ? BARE : (await builtInProfile(profile))!,
      clock: systemClock,
      size: { columns: 80, rows: 24 },
      names: () => ["alpha", "beta"],
      onBlock: (block) => {
        blocks.push(block);
        terminal.nudge();
      },
      onNotice: (notice) => {
        notices.push(notice);
        terminal.nudge();
      },
      onStatus: () => terminal.nudge(),
    });
    terminal.onChunk = (chunk) => observer.push(chunk);
    const command = [Deno.execPath(), "run", "-A", "--quiet", "--no-check", "--frozen"];
    const pid = spawnOnTerminal({
      command: [...command, `${ROOT}tests/agents/fake_${name}.ts`, log, ...options],
      directory: ROOT,
      env: runtimeEnv(),
      slavePath: terminal.slavePath,
    });
    return new AgentTerminal(terminal, observer, blocks, notices, pid, log);
  }

  get status(): AgentStatus {
    return this.observer.status;
  }

  /** What the fake logged so far, without its own `ready`. */
  events(): AgentEvent[] {
    let text: string;
    try {
      text = Deno.readTextFileSync(`${this.log}.events`);
    } catch {
      return [];
    }
    return text.split("\n").slice(0, -1).map((line) => JSON.parse(line) as AgentEvent);
  }
  texts(event: string): string[] {
    return this.events().filter((found) => found.event === event).map(({ text }) => text);
  }
  received(): Uint8Array {
    return Deno.readFileSync(this.log);
  }

  /** Looked at after each piece of output and each change of state. */
  until(condition: () => boolean, what: string): Promise<void> {
    return this.terminal.when(condition, what);
  }
  /** Until the fake logged so many of an event. */
  logged(event: string, count = 1): Promise<void> {
    return this.until(() => this.texts(event).length >= count, `${count} ${event}`);
  }
  ready(): Promise<void> {
    return this.until(() => this.status.reading().state === "ready", "ready");
  }

  type(text: string): Promise<void> {
    return this.terminal.type(text);
  }
  paste(text: string): Promise<void> {
    return this.terminal.type(`\x1b[200~${text}\x1b[201~`);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const pidfd = openPidfd(this.pid);
    sendSignal(this.pid, SIGKILL);
    const poll = new PollSet(1);
    poll.set(0, pidfd, POLLIN);
    await poll.wait();
    reap(this.pid);
    closeFd(pidfd);
    await this.terminal.close();
    await this.observer.close();
  }
}
