/**
 * A REPL on Node's readline, as many command-line programs have: it edits and echoes by itself in
 * raw mode, has a history, wraps long lines with cursor moves and knows no bracketed paste.
 */
import process from "node:process";
import { createInterface } from "node:readline";
import { ByteLog, fakeOptions } from "./fake_terminal.ts";

const log = new ByteLog(fakeOptions().log);
process.stdin.on("data", (chunk: Uint8Array) => log.received(chunk));
const repl = createInterface({
  input: process.stdin,
  output: process.stdout,
  prompt: "repl> ",
  terminal: true,
});
repl.on("line", (line: string) => {
  log.event("submitted", line);
  const say = /say<(.*)>/s.exec(line)?.[1]?.replaceAll("To.:", "To:").replaceAll("\\n", "\n");
  if (say !== undefined) process.stdout.write(say + "\n");
  repl.prompt();
});
repl.on("close", () => Deno.exit(0));
repl.prompt();
log.event("ready");
