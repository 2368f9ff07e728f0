/** The admission barrier and the agent's own state (G-05, G-14, G-19). */
import { ResultCode } from "../gen/common_pb.ts";
import {
  type GetAgentStatusRequest,
  type SetAdmissionStateRequest,
  SetAdmissionStateRequestSchema,
} from "../gen/agent_pb.ts";
import { TamqError } from "../../base/errors.ts";
import { conflict, contentDigest } from "../idempotency.ts";
import { answerMeta, bindingOf, checkMeta } from "../session.ts";
import { admissionOf, ADMISSIONS } from "../admission.ts";
import { type AgentCore, openSelf, selfOf, updateSelf } from "./core.ts";

export function admissionHandlers(core: AgentCore) {
  const { store, calls } = core;
  return {
    async setAdmissionState(request: SetAdmissionStateRequest) {
      const { barrierId, expectedAdmissionGeneration: expected } = request;
      const wanted = admissionOf(request.state);
      if (barrierId === "") {
        throw new TamqError("INVALID_ARGUMENT", "key_missing", "a barrier needs its barrier_id");
      }
      const digest = contentDigest(SetAdmissionStateRequestSchema, request);
      const { meta, epoch, barrier } = await store.commit(async (tx) => {
        const { self, meta } = await openSelf(tx, core, request);
        const { epoch } = self.value;
        const known = (await tx.get("barrier", barrierId))?.value;
        if (known !== undefined) {
          if (known.digest !== digest) throw conflict(`barrier ${barrierId}`);
          return { meta, epoch, barrier: known };
        }
        const current = self.value.admissionGeneration;
        if (expected !== BigInt(current)) {
          throw new TamqError(
            "ABORTED",
            "stale_admission",
            `admission is at generation ${current}, not ${expected}`,
            { hint: "read the agent's status before deciding anew" },
          );
        }
        const barrier = { digest, state: wanted, generation: current + 1 };
        await tx.insert("barrier", barrierId, barrier);
        await updateSelf(tx, self, {
          ...self.value,
          admission: wanted,
          admissionGeneration: barrier.generation,
        });
        return { meta, epoch, barrier };
      });
      // The evidence of a closed door is that nobody is inside any more (G-02, G-19).
      const active = calls.size;
      const applied = barrier.state === "open" || active === 0;
      return {
        meta: answerMeta(meta, epoch),
        result: applied ? ResultCode.APPLIED : ResultCode.ACCEPTED,
        state: ADMISSIONS[barrier.state],
        admissionGeneration: BigInt(barrier.generation),
        activeExecutions: active,
      };
    },

    async getAgentStatus(request: GetAgentStatusRequest) {
      const meta = checkMeta(request.meta, core.agentId);
      const self = (await store.commit(selfOf))?.value;
      return {
        meta: answerMeta(meta, self?.epoch ?? ""),
        agentId: core.agentId,
        session: self && bindingOf(self),
        admission: ADMISSIONS[self?.admission ?? "open"],
        admissionGeneration: BigInt(self?.admissionGeneration ?? 1),
        activeExecutions: calls.size,
        adapter: core.adapter.kind,
      };
    },
  };
}
