/** Commands by which the operator holds messages back and lets them go. */
import { command } from "./command.ts";
import { late } from "./late.ts";
import { flag, json, repoArgument } from "./parameters.ts";
import type { AllowFlags } from "./verbs/allow.ts";
import type { JsonFlag } from "./verbs/service.ts";

const pair = {
  kind: "tuple",
  parameters: [
    { ...repoArgument, placeholder: "SENDER", brief: "Repository that writes" },
    { ...repoArgument, placeholder: "TARGET", brief: "Repository that is written to" },
  ],
} as const;

export const allow = command<AllowFlags, [string, string]>({
  brief: "Let the worker of one repository write to another",
  details: `Lets messages of SENDER's worker go to TARGET, and those that wait for it already.
Repositories whose windows stand in one tmux session need no permission, nor does what a person
writes. The permission lasts until it is taken back; "tamq status" shows what is allowed and held.`,
  usage: ["[--both] [--remove] [--json] SENDER TARGET"],
  examples: [
    { run: "tamq allow alpha beta", does: "alpha may write to beta" },
    { run: "tamq allow --both alpha beta", does: "and beta to alpha" },
    { run: "tamq allow --remove alpha beta", does: "later messages are held again" },
  ],
  parameters: {
    flags: {
      both: flag("The way back as well"),
      remove: flag("Take the permission back"),
      json,
    },
    positional: pair,
  },
  load: () => late("cli/verbs/allow"),
});

export const unblock = command<JsonFlag, [string, string]>({
  brief: "Let a worker write again that was stopped for writing too much",
  details:
    `A worker that writes very many messages to one repository, as two programs that answer each other
do, is stopped: its further messages to that repository are refused. Look at what the two are doing,
then lift it here. "tamq status" lists who is blocked.`,
  usage: ["[--json] SENDER TARGET"],
  examples: [{ run: "tamq unblock alpha beta", does: "alpha may write to beta again" }],
  parameters: { flags: { json }, positional: pair },
  load: () => late("cli/verbs/unblock"),
});

export const pause = command<JsonFlag, []>({
  brief: "Hold every delivery until tamq resume; messages are still taken in",
  usage: ["[--json]"],
  examples: [{ run: "tamq pause", does: "also over a restart of the service" }],
  parameters: { flags: { json } },
  load: () => late("cli/verbs/pause"),
});

export const resume = command<JsonFlag, []>({
  brief: "Let deliveries go on after tamq pause",
  usage: ["[--json]"],
  examples: [{ run: "tamq resume", does: "what waited is delivered in its order" }],
  parameters: { flags: { json } },
  load: () => late("cli/verbs/resume"),
});

export const release = command<JsonFlag, [string]>({
  brief: "Let go what waits for a window that was opened with --mode hold",
  usage: ["[--json] REPO"],
  examples: [{ run: "tamq release alpha", does: "all that wait now; later ones are held again" }],
  parameters: {
    flags: { json },
    positional: { kind: "tuple", parameters: [repoArgument] },
  },
  load: () => late("cli/verbs/release"),
});
