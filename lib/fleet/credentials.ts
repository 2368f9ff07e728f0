/**
 * Certificate, key, authority and revocation list of a fleet process, from one directory
 * (`cert.pem`, `key.pem`, `ca.pem`, `crl.pem`). Read again when they change, without a restart.
 */
import { Buffer } from "node:buffer";
import { createPrivateKey, X509Certificate } from "node:crypto";
import http2 from "node:http2";
import grpc from "@grpc/grpc-js";
import { type Clock, pause } from "../base/clock.ts";
import { errorText, TamqError } from "../base/errors.ts";
import type { Log } from "../base/log.ts";
import { fleetOf, readRevoked } from "./ca.ts";
import { admitPeer, type Name, parseUri, type Peer, type Role } from "./identity.ts";

interface Material {
  readonly ca: string;
  readonly cert: string;
  readonly key: string;
  readonly revoked: ReadonlySet<string>;
}

type Listener<T> = (update: T | null) => void;
/** Several files are written one after the other: look once they are quiet. */
const SETTLE_MS = 50;

/** Throws `fleet_runtime` where the runtime cannot ask a client for its certificate. */
export function requireRuntime(): void {
  // Older runtimes have a TLS server without client certificates; it lacks this method as well.
  const server = http2.createSecureServer({}) as { setTimeout?: unknown };
  if (typeof server.setTimeout === "function") return;
  throw new TamqError(
    "FAILED_PRECONDITION",
    "fleet_runtime",
    `deno ${Deno.version.deno} cannot check client certificates`,
    { hint: "run fleet commands with deno 2.9 or newer" },
  );
}

export class Credentials {
  readonly #dir: string;
  readonly #clock: Clock;
  #material: Material;
  #watcher: Deno.FsWatcher | undefined;
  readonly #ca = new Set<Listener<{ caCertificate: Buffer }>>();
  readonly #identity = new Set<Listener<{ certificate: Buffer; privateKey: Buffer }>>();
  readonly fleet: string;

  private constructor(dir: string, clock: Clock, material: Material) {
    this.#dir = dir;
    this.#clock = clock;
    this.#material = material;
    this.fleet = fleetOf(material.ca);
  }

  /** Throws `fleet_runtime`, `fleet_credentials`, `crl_invalid`. */
  static async open(dir: string, clock: Clock): Promise<Credentials> {
    requireRuntime();
    return new Credentials(dir, clock, await load(dir));
  }

  /** The peer of a call, or `UNAUTHENTICATED` (G-16). */
  admit(certificate: unknown, roles: readonly Role[]): Peer {
    const { revoked } = this.#material;
    return admitPeer(certificate, { fleet: this.fleet, roles, revoked, now: this.#clock.now() });
  }

  /** Whom our own certificate names. Throws `certificate_role` where it is another role. */
  own(role: Role): Name {
    const { subjectAltName = "" } = new X509Certificate(this.#material.cert);
    const name = parseUri(subjectAltName.replace(/^URI:/, ""));
    if (name?.role === role && name.fleet === this.fleet) return name;
    throw new TamqError(
      "FAILED_PRECONDITION",
      "certificate_role",
      `${this.#dir}/cert.pem: is no certificate of ${role === "agent" ? "an" : "a"} ${role}`,
      { hint: `make one: tamq fleet ca issue ${role} NAME` },
    );
  }

  server(): grpc.ServerCredentials {
    return grpc.experimental.createCertificateProviderServerCredentials(
      this.#provider(),
      this.#provider(),
      true,
    );
  }

  /**
   * For calls to a server of that role, and of that name where one is given; another server's
   * certificate ends the handshake.
   */
  channel(role: Role, name?: string): grpc.ChannelCredentials {
    return grpc.experimental.createCertificateProviderChannelCredentials(
      this.#provider(),
      this.#provider(),
      {
        checkServerIdentity: (_host, certificate) => {
          try {
            const peer = this.admit(certificate, [role]);
            if (name !== undefined && peer.name !== name) return new Error(`this is ${peer.uri}`);
          } catch (error) {
            return error as Error;
          }
        },
      },
    );
  }

  /** Reads the files again; a broken set is refused and the old one stays. */
  async reload(): Promise<void> {
    const material = await load(this.#dir);
    if (fleetOf(material.ca) !== this.fleet) {
      throw new TamqError(
        "FAILED_PRECONDITION",
        "fleet_credentials",
        `${this.#dir}: of another fleet`,
        { hint: "restart the process to change its fleet" },
      );
    }
    this.#material = material;
    for (const tell of this.#ca) tell(this.#caUpdate());
    for (const tell of this.#identity) tell(this.#identityUpdate());
  }

  /** Reloads on every change until disposed. */
  watch(log: Log): void {
    const watcher = this.#watcher = Deno.watchFs(this.#dir);
    void (async () => {
      let due = false;
      for await (const _ of watcher) {
        if (due) continue;
        due = true;
        void pause(this.#clock, SETTLE_MS).then(async () => {
          due = false;
          if (this.#watcher === undefined) return;
          try {
            await this.reload();
            log.info("fleet.credentials_loaded", {});
          } catch (error) {
            log.error("fleet.credentials_refused", { reason: errorText(error) });
          }
        });
      }
    })();
  }

  [Symbol.dispose](): void {
    this.#watcher?.close();
    this.#watcher = undefined;
  }

  #caUpdate() {
    return { caCertificate: Buffer.from(this.#material.ca) };
  }

  #identityUpdate() {
    const { cert, key } = this.#material;
    return { certificate: Buffer.from(cert), privateKey: Buffer.from(key) };
  }

  /** What grpc-js asks for certificates. It hears only what is said after it has subscribed. */
  #provider() {
    return {
      addCaCertificateListener: (listener: Listener<{ caCertificate: Buffer }>) => {
        this.#ca.add(listener);
        queueMicrotask(() => listener(this.#caUpdate()));
      },
      removeCaCertificateListener: (listener: Listener<{ caCertificate: Buffer }>) => {
        this.#ca.delete(listener);
      },
      addIdentityCertificateListener: (
        listener: Listener<{ certificate: Buffer; privateKey: Buffer }>,
      ) => {
        this.#identity.add(listener);
        queueMicrotask(() => listener(this.#identityUpdate()));
      },
      removeIdentityCertificateListener: (
        listener: Listener<{ certificate: Buffer; privateKey: Buffer }>,
      ) => {
        this.#identity.delete(listener);
      },
    };
  }
}

async function load(dir: string): Promise<Material> {
  try {
    const read = (name: string) => Deno.readTextFile(`${dir}/${name}`);
    const [ca, cert, key, crl] = await Promise.all(
      ["ca.pem", "cert.pem", "key.pem", "crl.pem"].map(read),
    );
    const revoked = await readRevoked(crl!, ca!);
    // A half-written pair must never replace a whole one.
    if (!new X509Certificate(cert!).checkPrivateKey(createPrivateKey(key!))) {
      throw new Error("cert.pem and key.pem do not belong together");
    }
    return { ca: ca!, cert: cert!, key: key!, revoked };
  } catch (cause) {
    if (cause instanceof TamqError) throw cause;
    throw new TamqError(
      "FAILED_PRECONDITION",
      "fleet_credentials",
      `${dir}: ${errorText(cause)}`,
      { hint: "the directory needs cert.pem, key.pem, ca.pem and crl.pem of tamq fleet ca", cause },
    );
  }
}
