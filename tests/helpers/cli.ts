/** Runs the command line in this process: fast, with streams and environment of the test's own. */
import type { CliContext } from "../../lib/cli/context.ts";
import { runCli } from "../../lib/cli/run.ts";
import { systemClock } from "../../lib/base/clock.ts";
import type { Result } from "./world.ts";

export async function runInside(
  args: readonly string[],
  options: {
    env?: Record<string, string>;
    stdin?: string | Uint8Array;
    /** Both standard streams are a terminal, on which these are typed to questions. */
    answers?: readonly string[];
    /** Standard output is a terminal so wide. */
    columns?: number;
  } = {},
): Promise<Result> {
  let stdout = "";
  let stderr = "";
  const { env = {}, stdin = "", answers, columns } = options;
  let asked = 0;
  const answer = (question: string) => {
    stderr += question + "\n";
    return Promise.resolve(answers?.[asked++]);
  };
  const context: CliContext = {
    env: (name) => env[name],
    clock: systemClock,
    process: {
      stdout: { write: (text) => void (stdout += text) },
      stderr: { write: (text) => void (stderr += text.trim() === "" ? "" : text) },
    },
    out: (line) => void (stdout += line + "\n"),
    err: (line) => void (stderr += line + "\n"),
    flush: () => Promise.resolve(),
    stdinIsTerminal: () => answers !== undefined,
    stdoutIsTerminal: () => answers !== undefined || columns !== undefined,
    columns: () => columns ?? 80,
    stderrIsTerminal: () => false,
    async *stdinChunks() {
      yield typeof stdin === "string" ? new TextEncoder().encode(stdin) : stdin;
    },
    ask: answer,
    askLine: answer,
    readStdin(limit) {
      const bytes = typeof stdin === "string" ? new TextEncoder().encode(stdin) : stdin;
      return Promise.resolve(bytes.length > limit ? undefined : bytes);
    },
  };
  return { code: await runCli(args, context), stdout, stderr };
}
