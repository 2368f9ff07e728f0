/** `purge` of the coordination engine and of the embedded State Hub: the same command for two files. */
import { DEFAULT_BEFORE } from "../model/purge.ts";
import { command } from "./command.ts";
import { late } from "./late.ts";
import { flag, json, text } from "./parameters.ts";
import type { StatePurgeFlags } from "./verbs/state_purge.ts";

export function statePurge(of: "coord" | "hub", brief: string) {
  return command<StatePurgeFlags, []>({
    brief,
    details: of === "coord"
      ? `Triggers and leases stay, without their texts: by them nobody is woken twice. The last checkpoint
of each piece of work stays as well, and everything that the State Hub has not got yet.`
      : `Tasks and workplans stay: they are the record of the work. The last checkpoint of each task stays
as well, and messages that nobody has acknowledged.`,
    usage: ["[--before TIME] [--dry-run|--yes] [--json]"],
    examples: [
      { run: `tamq ${of} purge --dry-run`, does: "what there is that is older than a year" },
      { run: `tamq ${of} purge --before 90d --yes`, does: "removes it without asking" },
    ],
    parameters: {
      flags: {
        before: text("TIME", `Older than this time or age; ${DEFAULT_BEFORE} unless given`),
        dryRun: flag("Count only"),
        yes: flag("Do not ask"),
        json,
      },
    },
    load: async () => ({ default: (await late("cli/verbs/state_purge"))[of] }),
  });
}
