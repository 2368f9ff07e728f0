/** `tamq compose`: the operator's popup beside a window. */
import { command } from "./command.ts";
import { late } from "./late.ts";
import { flag, repo, text } from "./parameters.ts";
import type { ComposeFlags } from "./verbs/compose.ts";

export const compose = command<ComposeFlags, []>({
  brief: "Write a message in a tmux popup, without the text going to the program in the window",
  details:
    `Asks for a repository and a text and sends it. Opened by its key in the window of a repository
it is that window's operator who sends: the message says From:alpha/o. Anywhere else it is sent as by
"tamq send". Several lines are one message; an empty line ends it, Ctrl-C drops it, and ":e" opens
$VISUAL, $EDITOR or vi with what is written so far.

--bind KEY makes tmux open it as a popup when KEY is pressed after the prefix. It changes the running
tmux server, never your tmux.conf, and prints the line that you can add there yourself. A key that is
bound to something else is left alone.`,
  usage: [
    "[--to REPO] [--edit]",
    "--bind KEY [--no-prefix] [--print] [--edit] [--tmux-socket NAME]",
  ],
  examples: [
    { run: "tamq compose --bind T", does: "prefix T opens it, until tmux ends" },
    { run: "tamq compose --bind M-m --no-prefix", does: "Alt-m opens it, without a prefix" },
    { run: "tamq compose --bind T --print >> ~/.tmux.conf", does: "for the next time" },
    { run: "tamq compose", does: "here, without a popup" },
  ],
  parameters: {
    flags: {
      to: repo("Repository to send to; else it is asked for"),
      edit: flag("Write the text in an editor"),
      bind: text("KEY", "Bind KEY in the tmux server, as tmux writes keys: T, C-t, M-m, F9"),
      noPrefix: flag("Bind KEY without the prefix"),
      print: flag("Print the binding, change nothing"),
      tmuxSocket: text("NAME", "Name of the tmux server (tmux -L); by default $TMUX, else default"),
      pane: { ...text("PANE", "The pane that the popup was opened over"), hidden: true },
    },
  },
  load: () => late("cli/verbs/compose"),
});
