/** Commands that hand the message service to systemd. */
import { command, family } from "./command.ts";
import { late } from "./late.ts";
import { flag, json } from "./parameters.ts";
import type { JsonFlag } from "./verbs/service.ts";
import type { InstallFlags } from "./verbs/service_unit.ts";

const verbs = () => late("cli/verbs/service_unit");

const install = command<InstallFlags, []>({
  brief: "Write a systemd user unit for the message service and start it",
  details:
    `Writes a systemd user unit that runs the message service of this very tamq while you are logged in,
with the settings (TAMQ_STATE_DIR and the like) of the shell that it is called from. Starts it
unless a service runs already. A unit that something else wrote is never touched.

Where no user manager of systemd answers only the file is written.`,
  usage: ["[--print] [--json]"],
  examples: [
    { run: "tamq service install", does: "from now on the service starts at login" },
    { run: "tamq service install --print", does: "shows the unit and changes nothing" },
  ],
  parameters: { flags: { print: flag("Print the unit only"), json } },
  load: async () => ({ default: (await verbs()).install }),
});

const uninstall = command<JsonFlag, []>({
  brief: "Stop the unit and remove it; terminals and queued messages stay",
  usage: ["[--json]"],
  examples: [{ run: "tamq service uninstall", does: "tamq starts the service when it is needed" }],
  parameters: { flags: { json } },
  load: async () => ({ default: (await verbs()).uninstall }),
});

const status = command<JsonFlag, []>({
  brief: "Say whether the unit is installed, up to date and active",
  details: `The exit status is 0 when the unit is there and as this tamq would write it, else 1.`,
  usage: ["[--json]"],
  examples: [{ run: "tamq service status", does: "for people" }],
  parameters: { flags: { json } },
  load: async () => ({ default: (await verbs()).status }),
});

export const service = family("The message service in the care of systemd", {
  install,
  uninstall,
  status,
});
