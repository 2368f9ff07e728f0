/** A relay of a terminal by node-pty, for `node`: `relay FOLDER_WITH_NODE_MODULES CMD…`. */
import { createRequire } from "node:module";
import process from "node:process";

const [folder, program, ...args] = process.argv.slice(2);
const pty = createRequire(`${folder}/`)("node-pty");
const { columns: cols, rows } = process.stdout;
const worker = pty.spawn(program, args, { cols, rows, encoding: null, env: process.env });
process.stdin.setRawMode(true);
process.stdin.on("data", (keys) => worker.write(keys));
worker.onData((bytes) => {
  if (process.stdout.write(bytes)) return;
  worker.pause();
  process.stdout.once("drain", () => worker.resume());
});
worker.onExit(({ exitCode }) => process.exit(exitCode));
