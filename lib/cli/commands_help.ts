/** Commands that explain: guide, help, completion. */
import { command } from "./command.ts";
import { late } from "./late.ts";
import type { Shell } from "./completion_scripts.ts";

type NoFlags = Record<never, never>;

export const guide = command<NoFlags, []>({
  brief: "Print the text that teaches an agent how to send and read messages",
  usage: [""],
  examples: [{ run: "tamq guide >> AGENTS.md", does: "adds it to a repository's instructions" }],
  parameters: { flags: {} },
  load: () => late("cli/verbs/guide"),
});

export const help = command<NoFlags, [string?]>({
  brief: "Explain a command or a topic",
  usage: ["[COMMAND|TOPIC]"],
  examples: [
    { run: "tamq help send", does: "the same as tamq send --help" },
    { run: "tamq help config", does: "every key of the configuration file" },
    { run: "tamq help exit-codes", does: "what each exit status means" },
    { run: "tamq help protocol", does: "how other programs talk to the service" },
  ],
  parameters: {
    flags: {},
    positional: {
      kind: "tuple",
      parameters: [{
        parse: String,
        optional: true,
        placeholder: "TOPIC",
        brief: "A command, or a topic",
      }],
    },
  },
  load: () => late("cli/verbs/help"),
});

const SHELLS: readonly Shell[] = ["bash", "zsh", "fish"];

export const completion = command<NoFlags, [Shell]>({
  brief: "Print the completion script of a shell",
  usage: ["bash|zsh|fish"],
  examples: [
    { run: 'eval "$(tamq completion bash)"', does: "in ~/.bashrc" },
    { run: 'eval "$(tamq completion zsh)"', does: "in ~/.zshrc, after compinit" },
    { run: "tamq completion fish > ~/.config/fish/completions/tamq.fish", does: "once" },
  ],
  parameters: {
    flags: {},
    positional: {
      kind: "tuple",
      parameters: [{
        parse: (input): Shell => {
          const shell = SHELLS.find((name) => name === input);
          if (shell === undefined) throw new Error(`one of ${SHELLS.join(", ")} is wanted`);
          return shell;
        },
        placeholder: "SHELL",
        brief: SHELLS.join(", "),
        proposeCompletions: (partial) => SHELLS.filter((shell) => shell.startsWith(partial)),
      }],
    },
  },
  load: () => late("cli/verbs/completion"),
});
