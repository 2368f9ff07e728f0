/** Sessions of agents: who may act, and since when (G-04, G-14, G-16, G-17). */
import { TamqError } from "../../base/errors.ts";
import type { CallContext } from "../rpc.ts";
import { ResultCode } from "../gen/common_pb.ts";
import {
  type ActivateAgentRequest,
  ActivateAgentRequestSchema,
  ActivateAgentResponseSchema,
  type GetBootstrapRequest,
} from "../gen/dispatcher_pb.ts";
import { contentDigest, once } from "../idempotency.ts";
import type { FleetTx } from "../ports.ts";
import { answerMeta, bindingOf, ownMeta } from "../session.ts";
import {
  approvedAgent,
  assertActive,
  type DispatcherCore,
  moveExecution,
  sessionOf,
} from "./core.ts";

export function sessionHandlers(core: DispatcherCore) {
  const { store, clock, epoch } = core;
  return {
    async activateAgent(request: ActivateAgentRequest, { peer }: CallContext) {
      const meta = ownMeta(request.meta, peer);
      const { activationOperationId: id, bootId, cellId } = request;
      if (id === "" || bootId === "") {
        throw new TamqError(
          "INVALID_ARGUMENT",
          "key_missing",
          "an activation needs activation_operation_id and boot_id",
          { hint: "choose both anew for each start of the agent" },
        );
      }
      const digest = contentDigest(ActivateAgentRequestSchema, request);
      return await store.commit(async (tx) => {
        await assertActive(tx, epoch);
        const agent = await approvedAgent(tx, peer.name);
        if (agent.value.cellId !== cellId) {
          throw new TamqError("PERMISSION_DENIED", "cell_mismatch", `not approved for ${cellId}`, {
            hint: `${peer.name} is approved for cell ${agent.value.cellId}`,
          });
        }
        const scope = { agentId: peer.name, operationId: id, key: id };
        const asked = { method: "ActivateAgent", digest, now: clock.now() };
        return await once(tx, scope, asked, ActivateAgentResponseSchema, async () => {
          await fenceBoots(tx, peer.name, agent.value.bootId, bootId);
          const generation = agent.value.generation + 1;
          await fenceReservations(tx, core, peer.name);
          await tx.update("agent", peer.name, agent.revision, {
            ...agent.value,
            bootId,
            generation,
            epoch,
            unreachable: "",
          });
          return {
            meta: answerMeta(meta, epoch),
            result: ResultCode.APPLIED,
            session: bindingOf({ epoch, cellId, bootId, generation }),
            credential: {
              uri: peer.uri,
              fingerprintSha256: peer.fingerprint,
              notAfterUnixMs: BigInt(peer.notAfter),
            },
          };
        });
      });
    },

    async getBootstrap(request: GetBootstrapRequest, { peer }: CallContext) {
      const meta = ownMeta(request.meta, peer);
      return await store.commit(async (tx) => {
        await assertActive(tx, epoch);
        const { value } = await approvedAgent(tx, peer.name);
        const open = value.epoch === epoch ? sessionOf(value, epoch) : undefined;
        return {
          meta: answerMeta(meta, epoch),
          dispatcherEpoch: epoch,
          cellId: value.cellId,
          session: open && bindingOf(open),
          uploads: core.objects !== undefined,
        };
      });
    },
  };
}

/** A boot that was replaced never comes back, however late it asks (G-17). */
async function fenceBoots(
  tx: FleetTx,
  agentId: string,
  before: string | undefined,
  now: string,
): Promise<void> {
  const key = (boot: string) => JSON.stringify([agentId, boot]);
  const known = await tx.get("boot", key(now));
  if (known?.value.fenced) {
    throw new TamqError("ABORTED", "boot_fenced", `boot ${now} was replaced by a newer one`, {
      hint: "only one process may be an agent; this one must end",
    });
  }
  if (known === undefined) await tx.insert("boot", key(now), { fenced: false });
  if (before === undefined || before === now) return;
  const old = await tx.get("boot", key(before));
  if (old !== undefined) await tx.update("boot", key(before), old.revision, { fenced: true });
}

/** Permits of the session before are void now; nobody can say yet what became of their executions. */
async function fenceReservations(
  tx: FleetTx,
  core: DispatcherCore,
  agentId: string,
): Promise<void> {
  for (const { key, value } of await tx.list("reservation", { group: `${agentId}/permitted` })) {
    const { revision } = (await tx.get("reservation", key))!;
    const fenced = { ...value, state: "fenced", revision: value.revision + 1 } as const;
    await tx.update("reservation", key, revision, fenced, `${agentId}/fenced`);
    const execution = (await tx.get("execution", value.executionId))?.value;
    if (execution?.state === "permitted") {
      await moveExecution(tx, value.executionId, core.clock.now(), "unknown", "session_fenced");
    }
  }
}
