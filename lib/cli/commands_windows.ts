/** Commands about windows: opening them and what runs in them. */
import { MODES } from "../model/endpoint.ts";
import type { ColorFlag } from "./colour.ts";
import { command } from "./command.ts";
import { late } from "./late.ts";
import { color, flag, json, repoArgument, text } from "./parameters.ts";
import type { BrokerFlags } from "./verbs/broker.ts";
import type { StartFlags } from "./verbs/start.ts";
import type { JsonFlag } from "./verbs/service.ts";

const mode = {
  kind: "enum",
  values: MODES,
  brief: "How a message enters the program: typed and submitted, typed only, or held back",
} as const;

const launch = {
  bare: flag("Run CMD as it is: without the flags and variables that its profile adds"),
  profile: text("NAME", "Profile of CMD; by default its name decides (see tamq profile list)"),
} as const;

const recorded = {
  record: flag("Record what the terminal shows (see tamq record)"),
  recordInput: flag("Record what is typed as well; passwords only if the program shows them"),
  capture: flag("Write observed and delivered messages to a file, for diagnosis"),
} as const;

export const start = command<StartFlags, string[]>({
  brief: "Open one tmux window per repository and run a command in each",
  details:
    `Opens one tmux window per repository and runs CMD in each, in the repository's folder, under a
broker that carries messages. Starts the message service when it is not running. A repository
whose window is already open is left alone. "start" may be left out: tamq --command CMD REPO...

Inside tmux the windows are added to the current session; elsewhere a session "tamq" is made or
reused, and shown when standard input is a terminal.

Before anything is opened it says what it will run; with --dry-run that is all. Mode, profile and
more can be configured by repository and by command: see commands and repositories in tamq help
config.

An agent that a profile knows is started with the flags that its terminal needs to be read; they are
printed, and --bare leaves them out.

--capture writes the messages that a window addressed or got, with what became of them, to a JSON
lines file (0600) in captures/ of the state directory, for the search for a message that got lost.

--record writes everything that a window shows to a file of yours alone (0600), up to 64 MiB a
window: source code, secrets that a program prints, messages. "tamq record" lists and plays them.

CMD is split into words as a shell would, and runs without one: for pipes, variables and the like
write --command "sh -c '...'".`,
  usage: [
    "--command CMD [--mode trigger|draft|hold] [--profile NAME] [--bare]\n" +
    "             [--record] [--record-input] [--capture]\n" +
    "             [--tmux-socket NAME] [--no-service] [--dry-run] REPO...",
  ],
  examples: [
    { run: "tamq --command claude alpha beta", does: "two windows, an agent in each" },
    { run: "tamq --command 'bash -l' alpha", does: "a login shell; messages are shown in it" },
    { run: "tamq --command cat --tmux-socket lab alpha", does: "in the tmux server named lab" },
  ],
  parameters: {
    flags: {
      command: { ...text("CMD", "Command line to run in each window"), optional: false },
      mode: { ...mode, optional: true, brief: `${mode.brief}; trigger unless configured` },
      tmuxSocket: text("NAME", "Name of the tmux server (tmux -L); by default $TMUX, else default"),
      noService: flag("Open terminals only, without messages"),
      dryRun: flag("Only say what would be run"),
      ...launch,
      ...recorded,
    },
    aliases: { c: "command" },
    positional: { kind: "array", parameter: repoArgument, minimum: 1 },
  },
  load: () => late("cli/verbs/start"),
});

export const broker = command<BrokerFlags, string[]>({
  brief: "Run a command in this tmux pane under a broker (what `start` puts into each window)",
  usage: [
    "--repo REPO --cwd PATH --mode MODE [--no-service] [--bare] [--profile NAME]\n" +
    "              [--record] [--record-input] [--capture] -- CMD...",
  ],
  examples: [
    { run: "tamq broker --repo alpha --cwd /src/alpha --mode trigger -- cat", does: "by hand" },
  ],
  parameters: {
    flags: {
      repo: { ...text("REPO", "Registered name of the repository"), optional: false },
      cwd: { ...text("PATH", "Folder of the repository"), optional: false },
      mode: { ...mode, default: "trigger" },
      noService: flag("Without messages"),
      ...launch,
      ...recorded,
      handover: {
        ...text("WORD", "From the broker that becomes this program (tamq upgrade)"),
        hidden: true,
      },
    },
    positional: {
      kind: "array",
      parameter: { parse: String, placeholder: "CMD", brief: "Command and its arguments" },
      minimum: 1,
    },
  },
  load: () => late("cli/verbs/broker"),
});

export const endpoints = command<JsonFlag & ColorFlag, []>({
  brief: "List the tmux servers with live windows, and the windows",
  usage: ["[--json]"],
  examples: [
    { run: "tamq endpoints", does: "what can take messages now, and why not" },
    { run: "tamq endpoints --json", does: "one endpoint a line" },
  ],
  parameters: { flags: { color, json } },
  load: () => late("cli/verbs/endpoints"),
});

export const who = command<JsonFlag, []>({
  brief: "List the repositories that are live, one a line",
  usage: ["[--json]"],
  examples: [{ run: "tamq who", does: "whom you can write to now" }],
  parameters: { flags: { json } },
  load: () => late("cli/verbs/who"),
});
