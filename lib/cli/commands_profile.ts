/** Commands about agent profiles: how a terminal program is started, spoken to and read. */
import { command, family } from "./command.ts";
import { late } from "./late.ts";
import { flag, json, text } from "./parameters.ts";
import type * as verbs from "./verbs/profile.ts";
import type { JsonFlag } from "./verbs/service.ts";

const load = () => late("cli/verbs/profile");

const list = command<JsonFlag, []>({
  brief:
    "List the profiles and the commands that they are for, in the order in which they are tried",
  details:
    `Your own profiles are files NAME.toml in the folder "profiles" beside the configuration file
(tamq config path); they come before the built-in ones.`,
  usage: ["[--json]"],
  examples: [{ run: "tamq profile list", does: "your own ones first" }],
  parameters: { flags: { json } },
  load: async () => ({ default: (await load()).list }),
});

const show = command<Record<never, never>, [string]>({
  brief: "Print a profile as a file that you can start your own from",
  usage: ["NAME"],
  examples: [
    {
      run: "tamq profile show codex > ~/.config/tamq/profiles/codex.toml",
      does: "your own codex profile, which is used from then on",
    },
  ],
  parameters: {
    flags: {},
    positional: {
      kind: "tuple",
      parameters: [{ parse: String, placeholder: "NAME", brief: "Name of a profile" }],
    },
  },
  load: async () => ({ default: (await load()).show }),
});

const test = command<verbs.TestFlags, string[]>({
  brief: "Run a command in a private window and report what its profile recognises",
  details:
    `Runs CMD in a tmux server of its own, in this folder, writes nothing to it, and ends it once the
agent is ready or after 20 seconds. The exit status is 0 when messages could be delivered, else 1.`,
  usage: ["[--profile NAME] [--bare] [--json] 'CMD'", "[...] -- CMD..."],
  examples: [
    { run: "tamq profile test codex", does: "after an update of the agent" },
    { run: "tamq profile test 'codex --model o5'", does: "with options, quoted as for --command" },
    { run: "tamq profile test --profile codex ./my-wrapper", does: "a command of another name" },
  ],
  parameters: {
    flags: {
      profile: text("NAME", "Profile to use; by default the command's name decides"),
      bare: flag("Run CMD as it is: without what the profile adds"),
      report: { ...text("FILE", "What the window itself runs with"), hidden: true },
      json,
    },
    positional: {
      kind: "array",
      parameter: { parse: String, placeholder: "CMD", brief: "Command and its arguments" },
      minimum: 1,
    },
  },
  load: async () => ({ default: (await load()).test }),
});

export const profile = family("How terminal programs are started, spoken to and read", {
  list,
  show,
  test,
});
