/** What all parts of an agent share: itself, its store, and what it executes with. */
import type { Clock } from "../../base/clock.ts";
import { TamqError } from "../../base/errors.ts";
import type { Random } from "../../base/random.ts";
import type { RequestMeta } from "../gen/common_pb.ts";
import type { ExecutionAdapter, FleetStore, FleetTx, Stored } from "../ports.ts";
import type { SelfRecord } from "../records.ts";
import { checkMeta, checkSession } from "../session.ts";
import type { ActiveCalls } from "./calls.ts";

export interface AgentCore {
  readonly agentId: string;
  readonly cellId: string;
  /** Of this process. */
  readonly bootId: string;
  readonly store: FleetStore;
  readonly adapter: ExecutionAdapter;
  readonly calls: ActiveCalls;
  readonly clock: Clock;
  readonly random: Random;
  /** A request showed another session than ours: ask the dispatcher whether ours still holds. */
  readonly onDoubt: () => void;
}

const SELF = "self";

export function selfOf(tx: FleetTx): Promise<Stored<SelfRecord> | undefined> {
  return tx.get("self", SELF);
}

/** Keeps the session that the dispatcher opened; admission outlives sessions. */
export async function keepSession(
  tx: FleetTx,
  session: Pick<SelfRecord, "epoch" | "cellId" | "bootId" | "generation">,
): Promise<void> {
  const known = await selfOf(tx);
  if (known === undefined) {
    await tx.insert("self", SELF, { ...session, admission: "open", admissionGeneration: 1 });
  } else await tx.update("self", SELF, known.revision, { ...known.value, ...session });
}

export async function updateSelf(tx: FleetTx, self: Stored<SelfRecord>, value: SelfRecord) {
  await tx.update("self", SELF, self.revision, value);
}

/**
 * The agent itself, after the request has shown its session. Also a process that was replaced by
 * another on the same store finds out here: the store then names another boot (G-17).
 */
export async function openSelf(
  tx: FleetTx,
  core: AgentCore,
  request: { readonly meta?: RequestMeta },
): Promise<{ self: Stored<SelfRecord>; meta: RequestMeta }> {
  const meta = checkMeta(request.meta, core.agentId);
  const self = await selfOf(tx);
  try {
    if (self !== undefined && self.value.bootId !== core.bootId) {
      throw new TamqError("UNAUTHENTICATED", "session_fenced", "this process was replaced", {
        hint: "another process is this agent now; this one must end",
      });
    }
    checkSession(meta, self?.value);
  } catch (error) {
    core.onDoubt();
    throw error;
  }
  return { self: self!, meta };
}
