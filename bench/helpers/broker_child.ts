/** A broker on the terminal that it is started on, with a throw-away state directory: `child DIR [--profile=NAME] [--record] CMD…`. */
import { runBroker } from "../../lib/broker.ts";
import { loadSettings } from "../../lib/config.ts";

const [dir, ...rest] = Deno.args;
const profile = /^--profile=(.*)$/.exec(rest[0] ?? "")?.[1];
const record = rest[0] === "--record";
const command = profile === undefined && !record ? rest : rest.slice(1);
const env: Record<string, string> = {
  HOME: dir!,
  TAMQ_STATE_DIR: `${dir}/state`,
  TAMQ_SOCKET: `${dir}/tamq.sock`,
};
const status = await runBroker({
  repo: "alpha",
  path: dir!,
  command,
  mode: "trigger",
  tmux: { server_pid: Deno.pid, session: "bench", window_id: "@1", pane_id: "" },
  settings: await loadSettings((name) => env[name]),
  service: true,
  ...(profile === undefined ? {} : { profile }),
  ...(record ? { record: "output" as const } : {}),
  registry: {
    source: "bench",
    names: () => ["alpha", "beta"],
    find: (name) => ({ name, path: dir! }),
  },
});
Deno.exit(status);
