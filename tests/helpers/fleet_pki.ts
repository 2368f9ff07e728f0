/** A fleet's authority and directories of credentials, for tests. */
import { systemClock } from "../../lib/base/clock.ts";
import { systemRandom } from "../../lib/base/random.ts";
import { Authority, type Issued } from "../../lib/fleet/ca.ts";
import type { Role } from "../../lib/fleet/identity.ts";

export interface Pki {
  readonly dir: string;
  readonly authority: Authority;
  /** A directory with credentials of that name. */
  give(role: Role, name: string, days?: number): Promise<string>;
  /** Writes credentials into `dir`, over those that are there. */
  put(dir: string, issued: Issued): Promise<void>;
  revoke(dir: string, serials: readonly string[]): Promise<void>;
}

export async function makePki(dir: string, fleet = "lab"): Promise<Pki> {
  const tools = { clock: systemClock, random: systemRandom };
  const authority = await Authority.init(`${dir}/ca`, fleet, tools);
  const pki: Pki = {
    dir: `${dir}/ca`,
    authority,
    async give(role, name, days = 30) {
      const target = `${dir}/${role}.${name}.${systemRandom.bytes(2).join("")}`;
      await Deno.mkdir(target);
      await pki.put(target, await authority.issue({ role, name }, days));
      return target;
    },
    async put(target, { certificate, key }) {
      await Deno.copyFile(`${dir}/ca/ca.pem`, `${target}/ca.pem`);
      await Deno.copyFile(`${dir}/ca/crl.pem`, `${target}/crl.pem`);
      await Deno.writeTextFile(`${target}/cert.pem`, certificate);
      await Deno.writeTextFile(`${target}/key.pem`, key, { mode: 0o600 });
    },
    async revoke(target, serials) {
      await authority.revoke(serials);
      await Deno.copyFile(`${dir}/ca/crl.pem`, `${target}/crl.pem`);
    },
  };
  return pki;
}
