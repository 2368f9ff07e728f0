/** Finds the program of `--command` before anything is opened (E-05). */
import { TamqError } from "../base/errors.ts";
import type { Env } from "../config.ts";

/**
 * Throws `command_not_found` unless `program` can be run in each of `folders`: by its path (relative
 * ones against the folder it will run in) or by a search of PATH.
 */
export function requireCommand(program: string, env: Env, folders: readonly string[]): void {
  if (program.includes("/")) {
    for (const folder of folders) {
      const path = program.startsWith("/") ? program : `${folder}/${program}`;
      if (!isExecutable(path)) throw notFound(program, `there is no program ${path}`);
    }
    return;
  }
  const search = env("PATH") || "/usr/local/bin:/usr/bin:/bin";
  // An empty or relative entry means the folder it runs in.
  const found = search.split(":").some((entry) =>
    entry.startsWith("/")
      ? isExecutable(`${entry}/${program}`)
      : folders.every((folder) => isExecutable(`${folder}/${entry}/${program}`))
  );
  if (!found) throw notFound(program, `there is no program "${program}" in PATH`);
}

function isExecutable(path: string): boolean {
  try {
    const info = Deno.statSync(path);
    return info.isFile && ((info.mode ?? 0) & 0o111) !== 0;
  } catch {
    return false;
  }
}

function notFound(program: string, message: string): TamqError {
  return new TamqError("NOT_FOUND", "command_not_found", message, {
    hint: program.includes(" ")
      ? "quote its parts: the whole first word is taken for the program's name"
      : "check the spelling, or give its full path",
  });
}
