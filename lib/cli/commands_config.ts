/** Commands about the configuration file (C-03). */
import { command, family } from "./command.ts";
import { late } from "./late.ts";
import { json } from "./parameters.ts";
import type { JsonFlag } from "./verbs/service.ts";

type NoFlags = Record<never, never>;

const verbs = () => late("cli/verbs/config");

export const config = family("Show, check or begin the configuration file", {
  show: command<JsonFlag, []>({
    brief: "Show every setting in force and where it comes from",
    usage: ["[--json]"],
    examples: [
      { run: "tamq config show", does: "default, file, or the environment variable" },
      { run: "tamq config show --json", does: "one setting a line" },
    ],
    parameters: { flags: { json } },
    load: async () => ({ default: (await verbs()).show }),
  }),
  check: command<NoFlags, []>({
    brief: "Check the file; the exit status is 2 when something in it is wrong",
    usage: [""],
    examples: [{ run: "tamq config check", does: "names line, key, value and what is allowed" }],
    parameters: { flags: {} },
    load: async () => ({ default: (await verbs()).check }),
  }),
  path: command<NoFlags, []>({
    brief: "Print where the file is, or would be",
    usage: [""],
    examples: [{ run: '"$EDITOR" "$(tamq config path)"', does: "edits it" }],
    parameters: { flags: {} },
    load: async () => ({ default: (await verbs()).path }),
  }),
  init: command<NoFlags, []>({
    brief: "Write a file in which every key stands as a comment; never overwrites one",
    usage: [""],
    examples: [{ run: "tamq config init", does: "then take away the # before what you change" }],
    parameters: { flags: {} },
    load: async () => ({ default: (await verbs()).init }),
  }),
});
