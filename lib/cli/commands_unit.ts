/** The command that hands the message service to systemd. */
import { command } from "./command.ts";
import { late } from "./late.ts";
import { flag, json } from "./parameters.ts";
import type { UnitAction, UnitFlags } from "./verbs/service_unit.ts";

const UNIT_ACTIONS: readonly UnitAction[] = ["install", "uninstall", "status"];

export const service = command<UnitFlags, [UnitAction]>({
  brief: "Let systemd run the message service while you are logged in",
  details:
    `"install" writes a systemd user unit for this very tamq, with the settings (TAMQ_STATE_DIR and the
like) of the shell that it is called from, and starts it unless a service runs already.
"uninstall" stops it and removes the unit; terminals and queued messages stay. "status" says what
is installed; its exit status is 0 when the unit is there and up to date, else 1.

A unit that something else wrote is never touched. Without a user manager of systemd only the file
is written or removed.`,
  usage: ["install [--print]", "uninstall|status [--json]"],
  examples: [
    { run: "tamq service install", does: "from now on the service starts at login" },
    { run: "tamq service install --print", does: "shows the unit and changes nothing" },
    { run: "loginctl enable-linger", does: "(not tamq's) keeps it running after you log out" },
  ],
  parameters: {
    flags: { print: flag("Print the unit only"), json },
    positional: {
      kind: "tuple",
      parameters: [{
        parse: (input): UnitAction => {
          const action = UNIT_ACTIONS.find((name) => name === input);
          if (action === undefined) throw new Error(`one of ${UNIT_ACTIONS.join(", ")} is wanted`);
          return action;
        },
        placeholder: "ACTION",
        brief: UNIT_ACTIONS.join(", "),
        proposeCompletions: (partial) => UNIT_ACTIONS.filter((name) => name.startsWith(partial)),
      }],
    },
  },
  load: () => late("cli/verbs/service_unit"),
});
