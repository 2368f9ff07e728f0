/** What a worker says about its lease (K-07): from its own window, which proves who it is. */
import type { BlockedReason } from "../../model/checkpoint.ts";
import type { Verb } from "../command.ts";
import type { CliContext } from "../context.ts";
import { lookOf, table } from "../layout.ts";
import { relativeTime } from "../render.ts";
import { askEngine, type LeaseAnswer } from "./coord_call.ts";
import type { JsonFlag } from "./service.ts";

interface Answer {
  readonly lease: LeaseAnswer;
  readonly changed: boolean;
}

function told(context: CliContext, json: boolean | undefined, { lease, changed }: Answer): void {
  if (json) return context.out(JSON.stringify(lease));
  const until = lease.held
    ? `, expires ${relativeTime(lease.expires_at, context.clock.now())}`
    : "";
  context.out(`${lease.lease} is ${lease.state}${until}${changed ? "" : " (as before)"}`);
}

export const ack: Verb<JsonFlag, [string]> = async function ({ json }, lease) {
  told(this, json, await askEngine<Answer>(this, "ack", { lease }));
};

export const renew: Verb<JsonFlag, [string]> = async function ({ json }, lease) {
  told(this, json, await askEngine<Answer>(this, "renew", { lease }));
};

export const complete: Verb<JsonFlag, [string]> = async function ({ json }, lease) {
  told(this, json, await askEngine<Answer>(this, "complete", { lease }));
};

export interface ReleaseFlags extends JsonFlag {
  readonly stop?: boolean;
}
export const release: Verb<ReleaseFlags, [string]> = async function ({ stop, json }, lease) {
  told(this, json, await askEngine<Answer>(this, "release", { lease, stop: stop === true }));
};

export interface CheckpointFlags extends JsonFlag {
  readonly summary: string;
  readonly next?: string;
  readonly file?: readonly string[];
  readonly blocked?: BlockedReason;
}
export const checkpoint: Verb<CheckpointFlags, [string]> = async function (flags, lease) {
  const request = {
    lease,
    summary: flags.summary,
    files_changed: [...flags.file ?? []],
    ...(flags.next === undefined ? {} : { next_action: flags.next }),
    blocked_reason: flags.blocked ?? null,
  };
  told(this, flags.json, await askEngine<Answer>(this, "checkpoint", request));
};

export const lease: Verb<JsonFlag> = async function ({ json }) {
  const { repo, leases } = await askEngine<{ repo: string; leases: LeaseAnswer[] }>(
    this,
    "lease",
    {},
  );
  if (json) {
    for (const one of leases) this.out(JSON.stringify(one));
    return;
  }
  if (leases.length === 0) return this.out(`no lease is held for ${repo} in this window`);
  this.out(table(
    [
      ["LEASE", "STATE", "ATTEMPT", "EXPIRES"],
      ...leases.map((one) => [
        one.lease,
        one.state,
        String(one.attempt),
        relativeTime(one.expires_at, this.clock.now()),
      ]),
    ],
    lookOf(this),
    { header: true },
  ));
};
