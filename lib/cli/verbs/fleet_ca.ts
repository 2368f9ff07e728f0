/** `tamq fleet ca init|issue|revoke`: a small authority for one fleet. */
import { rfc3339, systemClock } from "../../base/clock.ts";
import { displaySafe } from "../../base/display.ts";
import { TamqError } from "../../base/errors.ts";
import { systemRandom } from "../../base/random.ts";
import { loadSettings } from "../../config.ts";
import { Authority } from "../../fleet/ca.ts";
import { type Role, ROLES, serial, uriOf } from "../../fleet/identity.ts";
import type { Verb } from "../command.ts";
import type { CliContext } from "../context.ts";
import { usageError } from "../errors.ts";

export interface CaFlags {
  readonly dir?: string;
  readonly json?: boolean;
}

export interface IssueFlags extends CaFlags {
  readonly out?: string;
  readonly days?: number;
}

export interface RevokeFlags extends CaFlags {
  readonly serial?: string;
}

const TOOLS = { clock: systemClock, random: systemRandom };

async function dirOf(context: CliContext, flags: CaFlags): Promise<string> {
  return flags.dir ?? `${(await loadSettings(context.env)).stateDir}/fleet/ca`;
}

function roleOf(text: string): Role {
  const role = ROLES.find((one) => one === text);
  if (role !== undefined) return role;
  throw usageError(`${text} is no role`, `one of ${ROLES.join(", ")}`);
}

export const init: Verb<CaFlags, [string]> = async function (flags, fleet) {
  const dir = await dirOf(this, flags);
  await Authority.init(dir, fleet, TOOLS);
  if (flags.json) return this.out(JSON.stringify({ fleet, dir }));
  this.out(displaySafe(`authority of fleet ${fleet} in ${dir}`));
  this.out("next: tamq fleet ca issue dispatcher NAME");
};

export const issue: Verb<IssueFlags, [string, string]> = async function (flags, roleText, name) {
  const role = roleOf(roleText);
  const dir = await dirOf(this, flags);
  const authority = await Authority.open(dir, TOOLS);
  const issued = await authority.issue({ role, name }, flags.days ?? 90);
  const out = flags.out ?? `${role}-${name}`;
  await Deno.mkdir(out, { recursive: true, mode: 0o700 });
  const files = {
    "ca.pem": authority.certificate,
    "crl.pem": await Deno.readTextFile(`${dir}/crl.pem`),
    "key.pem": issued.key,
    "cert.pem": issued.certificate,
  };
  for (const [file, text] of Object.entries(files)) {
    // Whole or not at all, and never readable by others: a running process may be looking.
    await Deno.writeTextFile(`${out}/${file}.new`, text, { mode: 0o600 });
    await Deno.rename(`${out}/${file}.new`, `${out}/${file}`);
  }
  const { uri, notAfter } = issued;
  const expires = rfc3339(notAfter);
  if (flags.json) {
    return this.out(JSON.stringify({ uri, serial: issued.serial, expires, dir: out }));
  }
  this.out(displaySafe(`${uri} in ${out}, until ${expires.slice(0, 10)}`));
};

export const revoke: Verb<RevokeFlags, [string, string]> = async function (flags, roleText, name) {
  const role = roleOf(roleText);
  const dir = await dirOf(this, flags);
  const authority = await Authority.open(dir, TOOLS);
  const uri = uriOf({ fleet: authority.fleet, role, name });
  const known = await authority.serialsOf(uri);
  const wanted = flags.serial === undefined ? undefined : serial(flags.serial);
  const serials = known.filter((one) => wanted === undefined || one === wanted);
  if (serials.length === 0) {
    throw new TamqError("NOT_FOUND", "unknown_certificate", `no such certificate of ${uri}`, {
      hint: `look into ${dir}/issued`,
    });
  }
  const revoked = await authority.revoke(serials);
  if (flags.json) return this.out(JSON.stringify({ uri, serials, revoked: revoked.length }));
  this.out(displaySafe(`${uri}: ${serials.length} revoked`));
  this.out(
    displaySafe(`next: copy ${dir}/crl.pem into the --tls directory of every fleet process`),
  );
};
