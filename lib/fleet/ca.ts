/**
 * A small private certificate authority for one fleet (`tamq fleet ca`). Its directory holds
 * `ca.pem`, `ca.key`, `crl.pem`, and `issued/` with what was given out, newest name last.
 */
import "reflect-metadata"; // @peculiar/x509 needs it to be there first
import * as x509 from "@peculiar/x509";
import type { Clock } from "../base/clock.ts";
import { errorText, TamqError } from "../base/errors.ts";
import { hex } from "../base/ids.ts";
import type { Random } from "../base/random.ts";
import { isLabel, type Name, parseUri, serial, uriOf } from "./identity.ts";

const ALGORITHM = { name: "ECDSA", namedCurve: "P-256", hash: "SHA-256" } as const;
const SERVER_AUTH = "1.3.6.1.5.5.7.3.1", CLIENT_AUTH = "1.3.6.1.5.5.7.3.2";
const DAY_MS = 86_400_000;
const CA_DAYS = 3650, CRL_DAYS = 3650;
/** Clocks of hosts differ a little. */
const SKEW_MS = 5 * 60_000;

export interface Issued {
  /** PEM. */
  readonly certificate: string;
  readonly key: string;
  readonly serial: string;
  readonly uri: string;
  readonly notAfter: number;
}

export interface AuthorityTools {
  readonly clock: Pick<Clock, "now">;
  readonly random: Random;
}

async function keyPair(): Promise<CryptoKeyPair> {
  return await crypto.subtle.generateKey(ALGORITHM, true, ["sign", "verify"]);
}

async function keyPem(key: CryptoKey): Promise<string> {
  return x509.PemConverter.encode(await crypto.subtle.exportKey("pkcs8", key), "PRIVATE KEY");
}

/** Written 0600 and whole, or not at all. */
async function writeOwn(path: string, text: string, createNew = false): Promise<void> {
  const part = `${path}.new`;
  await Deno.writeTextFile(part, text, { mode: 0o600 });
  if (createNew) {
    try {
      await Deno.link(part, path);
    } finally {
      await Deno.remove(part);
    }
  } else await Deno.rename(part, path);
}

export class Authority {
  readonly #dir: string;
  readonly #ca: x509.X509Certificate;
  readonly #key: CryptoKey;
  readonly #tools: AuthorityTools;
  readonly fleet: string;

  private constructor(
    dir: string,
    ca: x509.X509Certificate,
    key: CryptoKey,
    tools: AuthorityTools,
  ) {
    this.#dir = dir;
    this.#ca = ca;
    this.#key = key;
    this.#tools = tools;
    this.fleet = ca.subjectName.getField("CN")[0] ?? "";
  }

  /** PEM of the authority's certificate. */
  get certificate(): string {
    return this.#ca.toString("pem");
  }

  /** Makes the authority of `fleet` in `dir`. Throws `ca_exists`, `bad_name`. */
  static async init(dir: string, fleet: string, tools: AuthorityTools): Promise<Authority> {
    checkLabel(fleet, "fleet");
    await Deno.mkdir(`${dir}/issued`, { recursive: true, mode: 0o700 });
    const keys = await keyPair();
    const now = tools.clock.now();
    const ca = await x509.X509CertificateGenerator.createSelfSigned({
      serialNumber: newSerial(tools.random),
      name: [{ CN: [fleet] }],
      keys,
      signingAlgorithm: ALGORITHM,
      notBefore: new Date(now - SKEW_MS),
      notAfter: new Date(now + CA_DAYS * DAY_MS),
      extensions: [
        new x509.BasicConstraintsExtension(true, 0, true),
        new x509.KeyUsagesExtension(
          x509.KeyUsageFlags.keyCertSign | x509.KeyUsageFlags.cRLSign,
          true,
        ),
        await x509.SubjectKeyIdentifierExtension.create(keys.publicKey),
      ],
    });
    try {
      await writeOwn(`${dir}/ca.key`, await keyPem(keys.privateKey), true);
    } catch (error) {
      if (!(error instanceof Deno.errors.AlreadyExists)) throw error;
      throw new TamqError("ALREADY_EXISTS", "ca_exists", `${dir}: an authority is there already`, {
        hint: "use it, or name another directory with --dir",
      });
    }
    await writeOwn(`${dir}/ca.pem`, ca.toString("pem"));
    const authority = new Authority(dir, ca, keys.privateKey, tools);
    await authority.#writeRevoked([]);
    return authority;
  }

  /** The authority in `dir`. Throws `ca_missing`. */
  static async open(dir: string, tools: AuthorityTools): Promise<Authority> {
    try {
      const ca = new x509.X509Certificate(await Deno.readTextFile(`${dir}/ca.pem`));
      const raw = x509.PemConverter.decodeFirst(await Deno.readTextFile(`${dir}/ca.key`));
      const key = await crypto.subtle.importKey("pkcs8", raw, ALGORITHM, false, ["sign"]);
      return new Authority(dir, ca, key, tools);
    } catch (cause) {
      throw new TamqError("NOT_FOUND", "ca_missing", `${dir}: no authority (${errorText(cause)})`, {
        hint: "make one: tamq fleet ca init NAME",
        cause,
      });
    }
  }

  /** A key and a certificate for one name; both purposes, since agents serve and call. */
  async issue(name: Omit<Name, "fleet">, days: number): Promise<Issued> {
    checkLabel(name.name, name.role);
    const uri = uriOf({ ...name, fleet: this.fleet });
    const keys = await keyPair();
    const now = this.#tools.clock.now();
    const certificate = await x509.X509CertificateGenerator.create({
      serialNumber: newSerial(this.#tools.random),
      subject: [{ CN: [`${name.role} ${name.name}`] }],
      issuer: this.#ca.subject,
      publicKey: keys.publicKey,
      signingKey: this.#key,
      signingAlgorithm: ALGORITHM,
      notBefore: new Date(now - SKEW_MS),
      notAfter: new Date(now + days * DAY_MS),
      extensions: [
        new x509.SubjectAlternativeNameExtension([{ type: "url", value: uri }]),
        new x509.BasicConstraintsExtension(false, undefined, true),
        new x509.KeyUsagesExtension(x509.KeyUsageFlags.digitalSignature, true),
        new x509.ExtendedKeyUsageExtension([SERVER_AUTH, CLIENT_AUTH]),
        await x509.AuthorityKeyIdentifierExtension.create(this.#ca),
      ],
    });
    const issued = {
      certificate: certificate.toString("pem"),
      key: await keyPem(keys.privateKey),
      serial: serial(certificate.serialNumber),
      uri,
      notAfter: certificate.notAfter.getTime(),
    };
    const file = `${this.#dir}/issued/${name.role}.${name.name}.${issued.serial}.pem`;
    await writeOwn(file, issued.certificate);
    return issued;
  }

  /** Serials of every certificate that was issued for `uri`. */
  async serialsOf(uri: string): Promise<string[]> {
    const name = parseUri(uri);
    if (name === undefined || name.fleet !== this.fleet) return [];
    const prefix = `${name.role}.${name.name}.`;
    const found: string[] = [];
    for await (const { name: file } of Deno.readDir(`${this.#dir}/issued`)) {
      const rest = file.slice(prefix.length, -".pem".length);
      if (file.startsWith(prefix) && /^[0-9A-F]+$/.test(rest)) found.push(rest);
    }
    return found;
  }

  /** Adds serials to the revocation list; returns the whole of it. */
  async revoke(serials: readonly string[]): Promise<string[]> {
    const before = await readRevoked(
      await Deno.readTextFile(`${this.#dir}/crl.pem`),
      this.certificate,
    );
    const all = [...new Set([...before, ...serials.map(serial)])].sort();
    await this.#writeRevoked(all);
    return all;
  }

  async #writeRevoked(serials: readonly string[]): Promise<void> {
    const now = this.#tools.clock.now();
    const crl = await x509.X509CrlGenerator.create({
      issuer: this.#ca.subject,
      thisUpdate: new Date(now - SKEW_MS),
      nextUpdate: new Date(now + CRL_DAYS * DAY_MS),
      entries: serials.map((one) => ({
        serialNumber: one.length % 2 === 0 ? one : `0${one}`,
        revocationDate: new Date(now),
      })),
      signingAlgorithm: ALGORITHM,
      signingKey: this.#key,
    });
    await writeOwn(`${this.#dir}/crl.pem`, x509.PemConverter.encode(crl.rawData, "X509 CRL"));
  }
}

/** Serials on a revocation list that this authority signed. Throws `crl_invalid`. */
export async function readRevoked(pem: string, caPem: string): Promise<Set<string>> {
  try {
    const crl = new x509.X509Crl(x509.PemConverter.decodeFirst(pem));
    const ca = new x509.X509Certificate(caPem);
    if (!await crl.verify({ publicKey: ca })) throw new Error("not signed by this authority");
    return new Set(crl.entries.map((entry) => serial(entry.serialNumber)));
  } catch (cause) {
    throw new TamqError(
      "FAILED_PRECONDITION",
      "crl_invalid",
      `the revocation list cannot be used: ${errorText(cause)}`,
      { hint: "copy crl.pem of the fleet's authority again", cause },
    );
  }
}

/** The fleet that an authority's certificate names. */
export function fleetOf(caPem: string): string {
  return new x509.X509Certificate(caPem).subjectName.getField("CN")[0] ?? "";
}

function newSerial(random: Random): string {
  const bytes = random.bytes(16);
  bytes[0] = (bytes[0]! & 0x7f) | 0x40; // positive, and of full length
  return hex(bytes);
}

function checkLabel(text: string, what: string): void {
  if (isLabel(text)) return;
  throw new TamqError(
    "INVALID_ARGUMENT",
    "bad_name",
    `${text}: not usable as a name of a ${what}`,
    {
      hint: "use up to 63 lower-case letters, digits, '.', '_' and '-'",
    },
  );
}
