/** Writing a message in the operator's own editor (decision 0014). */
import { displaySafe } from "../base/display.ts";
import { errorText, TamqError } from "../base/errors.ts";
import { newToken } from "../base/ids.ts";
import { systemRandom } from "../base/random.ts";
import { openOwnFile } from "../base/own_file.ts";
import { onStopSignals } from "../ipc/lifecycle.ts";
import type { CliContext } from "./context.ts";
import { splitWords } from "./words.ts";

/** Everything from this line on is ours and not sent. */
const SCISSORS = "# ------------------------ >8 ------------------------";

/** A text that was written, and the file that it lies in until it is sent. */
export interface Draft {
  readonly text: string;
  readonly path: string;
  /** Once it is sent, or is nothing. */
  discard(): void;
}

/**
 * Opens `$VISUAL`, `$EDITOR` or vi on `beginning` with an explanation below it. Throws `editor_failed`
 * when it cannot be run or does not end well, and `command_needs_shell` for what only a shell could
 * run; what was written is then kept.
 */
export async function writeInEditor(
  context: CliContext,
  dir: string,
  beginning: string,
  explanation: readonly string[],
): Promise<Draft> {
  const editor = context.env("VISUAL") || context.env("EDITOR") || "vi";
  const argv = splitWords(editor);
  Deno.mkdirSync(dir, { recursive: true, mode: 0o700 });
  const path = `${dir}/message-${newToken(systemRandom)}.txt`;
  const template = `${beginning}\n${SCISSORS}\n${
    explanation.map((line) => `# ${displaySafe(line)}\n`).join("")
  }`;
  {
    using file = openOwnFile(path, "append");
    file.writeSync(new TextEncoder().encode(template));
  }
  const discard = () => Deno.removeSync(path);
  const code = await run([...argv, path]).catch((cause) => {
    discard();
    throw new TamqError(
      "FAILED_PRECONDITION",
      "editor_failed",
      `the editor "${argv[0]}" cannot be run: ${errorText(cause)}`,
      { hint: "set VISUAL or EDITOR to an editor, or give the text: tamq send 'To:REPO: TEXT'" },
    );
  });
  const written = Deno.readTextFileSync(path);
  if (code !== 0) {
    const kept = written !== template;
    if (!kept) discard();
    throw new TamqError(
      "FAILED_PRECONDITION",
      "editor_failed",
      `the editor "${argv[0]}" ended with status ${code}; nothing was sent`,
      { hint: kept ? `what you wrote is in ${path}` : "tamq send 'To:REPO: TEXT' needs no editor" },
    );
  }
  const text = written.split(/^# -+ >8 -+$/m)[0]!.trimEnd();
  Deno.writeTextFileSync(path, text + "\n"); // so that --file can send it
  return { text, path, discard };
}

/** Ctrl-C is the editor's while it runs. */
async function run(argv: readonly string[]): Promise<number> {
  const restore = onStopSignals(() => {}, () => {});
  try {
    const [program, ...args] = argv;
    return (await new Deno.Command(program!, { args }).spawn().status).code;
  } finally {
    restore();
  }
}
