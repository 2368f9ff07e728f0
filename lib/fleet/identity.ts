/** Who speaks: the one URI name in the certificate, and nothing that anybody says of himself (G-16). */
import { TamqError } from "../base/errors.ts";

export const ROLES = ["agent", "dispatcher", "operator"] as const;
export type Role = typeof ROLES[number];

export interface Name {
  readonly fleet: string;
  readonly role: Role;
  readonly name: string;
}

/** A peer whose certificate our authority signed. */
export interface Peer extends Name {
  readonly uri: string;
  readonly fingerprint: string;
  /** Unix epoch, milliseconds. */
  readonly notAfter: number;
}

const LABEL = "[a-z0-9](?:[a-z0-9._-]{0,61}[a-z0-9])?";
const URI = new RegExp(`^tamq://(${LABEL})/(${ROLES.join("|")})/(${LABEL})$`);

/** Whether `text` may be the name of a fleet, an agent, a dispatcher or an operator. */
export function isLabel(text: string): boolean {
  return new RegExp(`^${LABEL}$`).test(text);
}

export function uriOf({ fleet, role, name }: Name): string {
  return `tamq://${fleet}/${role}/${name}`;
}

export function parseUri(uri: string): Name | undefined {
  const match = URI.exec(uri);
  if (match === null) return undefined;
  const [, fleet, role, name] = match;
  return { fleet: fleet!, role: role as Role, name: name! };
}

/** What the runtime tells of a peer's certificate. */
interface SeenCertificate {
  readonly subjectaltname?: string;
  readonly serialNumber?: string;
  readonly fingerprint256?: string;
  readonly valid_from?: string;
  readonly valid_to?: string;
}

/** Serial numbers as they are compared: hexadecimal, upper case, without leading zeros. */
export function serial(text: string): string {
  return text.replace(/[^0-9a-f]/gi, "").replace(/^0+(?=.)/, "").toUpperCase();
}

export interface AdmissionRules {
  readonly fleet: string;
  readonly roles: readonly Role[];
  readonly revoked: ReadonlySet<string>;
  /** Unix epoch, milliseconds. */
  readonly now: number;
}

/**
 * The peer behind a certificate that the handshake has verified. What the handshake does not look
 * at is decided here, again for each call, since connections stay open: exactly one name, of our
 * fleet and of a role that may speak here; not revoked; not expired. Throws `UNAUTHENTICATED`.
 */
export function admitPeer(certificate: unknown, rules: AdmissionRules): Peer {
  const seen = (certificate ?? {}) as SeenCertificate;
  const refuse = (reason: string, message: string): never => {
    throw new TamqError("UNAUTHENTICATED", reason, message, {
      hint: "use a certificate that tamq fleet ca issue made for this role and fleet",
    });
  };
  const names = seen.subjectaltname ?? "";
  const uri = names.startsWith("URI:") ? names.slice(4) : "";
  const name = parseUri(uri);
  if (name === undefined || seen.serialNumber === undefined) {
    return refuse("certificate_name", "the certificate names nobody of a fleet");
  }
  if (name.fleet !== rules.fleet) {
    return refuse("certificate_fleet", `the certificate is of another fleet (${name.fleet})`);
  }
  if (!rules.roles.includes(name.role)) {
    return refuse("certificate_role", `a certificate of role ${name.role} may not speak here`);
  }
  if (rules.revoked.has(serial(seen.serialNumber))) {
    return refuse("certificate_revoked", `the certificate of ${uri} is revoked`);
  }
  const [from, to] = [Date.parse(seen.valid_from ?? ""), Date.parse(seen.valid_to ?? "")];
  if (!(from <= rules.now && rules.now < to)) {
    return refuse("certificate_expired", `the certificate of ${uri} is not valid now`);
  }
  return { ...name, uri, fingerprint: seen.fingerprint256 ?? "", notAfter: to };
}
