/** `tamq compose` (B-03, B-04): the operator writes beside a window, not into its program. */
import { displaySafe, displaySafeBlock } from "../../base/display.ts";
import { errorText, TamqError } from "../../base/errors.ts";
import { newToken } from "../../base/ids.ts";
import { openOwnFile } from "../../base/own_file.ts";
import { systemRandom } from "../../base/random.ts";
import { selfCommand } from "../../base/self.ts";
import { loadSettings } from "../../config.ts";
import { checkBody } from "../../model/body.ts";
import { LOCAL_SENDER, parseAddress } from "../../model/envelope.ts";
import { parseTmuxVariable, Tmux } from "../../tmux/client.ts";
import { bindCompose, type ComposeKey, composeLine } from "../../tmux/compose_key.ts";
import { repoOfPane } from "../../tmux/windows.ts";
import type { Verb } from "../command.ts";
import type { CliContext } from "../context.ts";
import { usageError } from "../errors.ts";
import { late } from "../late.ts";
import { repoNames } from "../parameters.ts";
import { chooseServer } from "../tmux_server.ts";
import { windowEnvironment } from "../window_environment.ts";
import { quoteWord } from "../words.ts";
import { ask } from "./service.ts";

export interface ComposeFlags {
  readonly to?: string;
  readonly edit?: boolean;
  readonly bind?: string;
  readonly noPrefix?: boolean;
  readonly print?: boolean;
  readonly tmuxSocket?: string;
  readonly pane?: string;
}

/** The window beside which it is written; it is the service that believes it or not. */
interface Beside {
  readonly repo: string;
  readonly tmux: { readonly server_pid: number; readonly window_id: string };
}

const compose: Verb<ComposeFlags> = async function (flags) {
  if (flags.bind !== undefined) return await bind(this, flags, flags.bind);
  for (const name of ["noPrefix", "print", "tmuxSocket"] as const) {
    if (flags[name] !== undefined) throw usageError("only --bind KEY goes with that", "see --help");
  }
  if (!this.stdinIsTerminal()) {
    throw usageError("compose asks at a terminal", "elsewhere: tamq send --to REPO < FILE");
  }
  const beside = flags.pane === undefined ? undefined : await windowOf(this, flags.pane);
  const names = await repoNames.call(this, "");
  this.err(`From:${displaySafe(beside?.repo ?? LOCAL_SENDER)}/o   (Ctrl-C drops it)`);
  let body: string | undefined;
  for (let to = flags.to;; to = undefined) {
    to ??= await question(this, `To (${displaySafe(shortList(names))}): `);
    // An address as it would be typed in the window.
    const known = parseAddress(`To:${to}: x`, names)?.target ?? to;
    if (known === undefined || known === "") return dropped(this);
    body ??= flags.edit ? await edited(this, known, "") : await typed(this, known);
    if (body === undefined || body.trim() === "") return dropped(this);
    try {
      const id = await submit(this, beside, known, body);
      this.out(id);
      return;
    } catch (error) {
      // The text is not lost for a mistyped name; everything else is told and ends it.
      if (!(error instanceof TamqError) || error.reason !== "unknown_target") {
        return await failed(this, await kept(this, error, known, body), beside !== undefined);
      }
      this.err(
        displaySafe(error.hint === undefined ? error.message : `${error.message}; ${error.hint}`),
      );
    }
  }
};
export default compose;

function dropped(context: CliContext): number {
  context.err("tamq: nothing was sent");
  return 1;
}

/** What was written is kept where `tamq send` finds it. */
async function kept(
  context: CliContext,
  error: unknown,
  to: string,
  body: string,
): Promise<unknown> {
  if (!(error instanceof TamqError)) return error;
  const { stateDir } = await loadSettings(context.env);
  const path = `${stateDir}/drafts/message-${newToken(systemRandom)}.txt`;
  try {
    Deno.mkdirSync(`${stateDir}/drafts`, { recursive: true, mode: 0o700 });
    using file = openOwnFile(path, "append");
    const bytes = new TextEncoder().encode(body + "\n");
    for (let done = 0; done < bytes.length;) done += file.writeSync(bytes.subarray(done));
  } catch {
    return error; // a full disk: the reason alone is told
  }
  const retry = `your text is in ${path}: tamq send --to ${quoteWord(to)} --file FILE`;
  const hint = error.hint === undefined ? retry : `${error.hint}\n${retry}`;
  return new TamqError(error.code, error.reason, error.message, { hint, cause: error });
}

/** A popup closes with its command: the reason must be read first. */
async function failed(context: CliContext, error: unknown, popup: boolean): Promise<number> {
  if (!popup) throw error;
  const hint = error instanceof TamqError && error.hint !== undefined ? `\n${error.hint}` : "";
  context.err(displaySafeBlock(`tamq: not sent: ${errorText(error)}${hint}`, ""));
  await question(context, "Enter closes this. ");
  return 1;
}

async function submit(
  context: CliContext,
  beside: Beside | undefined,
  target: string,
  body: string,
): Promise<string> {
  const checked = checkBody(body);
  if (!checked.ok) {
    const { reason, message, hint } = checked.error;
    throw new TamqError("INVALID_ARGUMENT", reason, message, { hint });
  }
  const common = {
    idempotency_key: newToken(systemRandom),
    target_repo: target,
    body: checked.value,
  };
  if (beside !== undefined) {
    return (await ask(context, "compose", { ...common, tmux: beside.tmux })).message_id;
  }
  return (await ask(context, "send", {
    ...common,
    client_id: "tamq-cli",
    sender_repo: LOCAL_SENDER,
    provenance: "cli",
  })).message_id;
}

/** Undefined when the pane is in no window of a repository: then it is a plain send. */
async function windowOf(context: CliContext, pane: string): Promise<Beside | undefined> {
  const server = parseTmuxVariable(context.env("TMUX"));
  if (server === undefined || !/^%\d+$/.test(pane)) return undefined;
  const found = await repoOfPane(new Tmux({ path: server.path }), pane);
  if (found === undefined) return undefined;
  const { repo, ...tmux } = found;
  return { repo, tmux };
}

/** Lines to an empty one; `:e` goes on in the editor. Undefined: given up. */
async function typed(context: CliContext, to: string): Promise<string | undefined> {
  context.err("Text; an empty line ends it, :e opens the editor");
  const lines: string[] = [];
  for (;;) {
    const line = await question(context, "> ");
    if (line === undefined && lines.length === 0) return undefined;
    if (line === undefined || line === "") return lines.join("\n");
    if (line === ":e") return await edited(context, to, lines.join("\n"));
    lines.push(line);
  }
}

async function edited(context: CliContext, to: string, text: string): Promise<string | undefined> {
  const { writeMessage } = await late("cli/write_message");
  try {
    const draft = await writeMessage(context, to, text);
    draft.discard();
    return draft.text;
  } catch (error) {
    if (error instanceof TamqError && error.reason === "text_empty") return undefined;
    throw error;
  }
}

/** One line as typed; undefined at the end of input. */
async function question(context: CliContext, text: string): Promise<string | undefined> {
  await context.flush();
  return await context.askLine(text);
}

const MOST_NAMES = 8;
function shortList(names: readonly string[]): string {
  const more = names.length > MOST_NAMES ? ", …" : "";
  return names.slice(0, MOST_NAMES).join(", ") + more;
}

/** Variables that choose a configuration, a state or a service; the rest is the tmux server's. */
const OWN = /^(?:TAMQ_|GITA_|STATEHUB_|XDG_(?:CONFIG|STATE)_HOME$)/;

async function bind(context: CliContext, flags: ComposeFlags, key: string): Promise<number> {
  if (key === "" || /[\s;]/.test(key)) throw usageError(`"${key}" is no key`, "as in: T, C-t, F9");
  const { tmux } = await chooseServer(context.env, flags.tmuxSocket);
  const wish: ComposeKey = {
    key,
    root: flags.noPrefix === true,
    argv: selfCommand(["compose", ...flags.edit ? ["--edit"] : []]),
    env: windowEnvironment(context.env, new Set()),
  };
  if (flags.print) {
    // In a tmux.conf it outlives this shell: only what was set for tamq goes with it.
    const own = Object.entries(wish.env).filter(([name]) => OWN.test(name));
    context.out(composeLine({ ...wish, env: Object.fromEntries(own) }));
    return 0;
  }
  if (await tmux.serverPid() === undefined) {
    throw new TamqError("FAILED_PRECONDITION", "tmux_not_running", "no tmux server runs there", {
      hint: `start one, or print the line for tmux.conf: tamq compose --bind ${
        quoteWord(key)
      } --print`,
    });
  }
  await bindCompose(tmux, wish);
  context.out(`${flags.noPrefix ? "" : "prefix "}${key} opens it, until this tmux server ends`);
  context.out(`for your tmux.conf: tamq compose --bind ${quoteWord(key)} --print`);
  return 0;
}
