/** Which tmux server and session windows go to (E-05). */
import { displaySafe } from "../base/display.ts";
import type { Env } from "../config.ts";
import { parseTmuxVariable, Tmux } from "../tmux/client.ts";
import { ownSession, type Place, SESSION, sessionOfPane } from "../tmux/windows.ts";
import type { CliContext } from "./context.ts";
import { usageError } from "./errors.ts";
import { quoteWord } from "./words.ts";

export interface Surroundings {
  readonly tmux: Tmux;
  readonly place: Place;
  /** We run in a pane of that very server. */
  readonly inside: boolean;
  /** We run in a pane of some tmux server: attaching would nest. */
  readonly nested: boolean;
}

/**
 * The server named by `--tmux-socket`, else the one whose pane we run in, else the default one.
 * Throws `tmux_missing` and `tmux_too_old`. Starts nothing.
 */
export async function chooseServer(env: Env, name: string | undefined): Promise<Surroundings> {
  if (name === "") throw usageError("--tmux-socket is empty", "give a name as in tmux -L NAME");
  const around = parseTmuxVariable(env("TMUX"));
  const tmux = new Tmux(
    name === undefined ? { path: around?.path } : name.includes("/") ? { path: name } : { name },
  );
  await tmux.requireVersion();
  const pid = await tmux.serverPid();
  const inside = around !== undefined && pid === around.pid;
  if (inside) {
    const sessionId = await sessionOfPane(tmux, env("TMUX_PANE"));
    return { tmux, place: { kind: "session", sessionId }, inside, nested: true };
  }
  if (name === undefined && around !== undefined) {
    // $TMUX outlived its server; what it names is no place to open windows in.
    return await chooseServer((key) => key === "TMUX" ? undefined : env(key), undefined);
  }
  const sessionId = pid === undefined ? undefined : await ownSession(tmux);
  return {
    tmux,
    place: sessionId === undefined
      ? { kind: "new", size: terminalSize() }
      : { kind: "session", sessionId },
    inside,
    nested: around !== undefined,
  };
}

function terminalSize(): { columns: number; rows: number } | undefined {
  try {
    const { columns, rows } = Deno.consoleSize();
    return columns > 0 && rows > 0 ? { columns, rows } : undefined;
  } catch {
    return undefined; // no terminal
  }
}

/** Shows the windows when standard input is a terminal outside tmux; returns an exit status. */
export async function attachTerminal(
  context: CliContext,
  { tmux, inside, nested }: Surroundings,
  sessionId: string | undefined,
  windowId: string | undefined,
): Promise<number> {
  if (inside) return 0;
  const target = sessionId ?? `=${SESSION}`;
  const terminal = context.stdinIsTerminal() && context.stdoutIsTerminal();
  if (nested || !terminal) {
    const command = [...tmux.address, "attach-session", "-t", `=${SESSION}`];
    context.out(`show them with: ${displaySafe(command.map(quoteWord).join(" "))}`);
    return 0;
  }
  await context.flush();
  if (windowId !== undefined) await tmux.attempt("select-window", "-t", windowId);
  return await tmux.interactive("attach-session", "-t", target);
}
