/** The command that brings running windows up to date. */
import { command } from "./command.ts";
import { late } from "./late.ts";
import { count, flag, json, repoArgument, text } from "./parameters.ts";
import type { UpgradeFlags } from "./verbs/upgrade.ts";

export const upgrade = command<UpgradeFlags, string[]>({
  brief: "Bring the service and running windows to this version; workers do not notice",
  details:
    `Restarts the message service as this very program, and has the broker of each window, or those of
REPO, become it too: the same process, the same terminal, the same worker, which is neither ended
nor told. Messages wait meanwhile; none is lost or sent twice.

Each broker tries the program first, then waits for a moment at which nothing is under way – no
message being typed, no output unread – for SECONDS at most. One that cannot stays what it is and
works on; the reason is told, and the exit status is 1. Windows opened with --no-service, and those
of versions before this command, stay as they are until their command ends.

A service that runs in a terminal is replaced by one in the background, one in the care of systemd
is restarted there. Coordination engine and State Hub are restarted by "tamq coord" and "tamq hub".`,
  usage: ["[--dry-run] [--wait SECONDS] [--json] [REPO...]"],
  examples: [
    { run: "tamq upgrade", does: "after a newer tamq was installed" },
    { run: "tamq upgrade --dry-run", does: "which versions run now, and what would be done" },
    { run: "tamq upgrade alpha", does: "the service and the windows of alpha alone" },
  ],
  parameters: {
    flags: {
      dryRun: flag("Tell what would be done, and do nothing"),
      wait: {
        kind: "parsed",
        parse: count(0, 600),
        optional: true,
        placeholder: "SECONDS",
        brief: "How long each window may wait for a quiet moment (default 10)",
      },
      json,
      check: flag("What a broker asks a program before it becomes it", true),
      profile: { ...text("NAME", "The profile that the broker runs with"), hidden: true },
    },
    aliases: { n: "dryRun" },
    positional: { kind: "array", parameter: repoArgument },
  },
  load: () => late("cli/verbs/upgrade"),
});
