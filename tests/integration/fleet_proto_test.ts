/** The contract as files: complete, clean, fresh, and guarded against breaking changes. */
import assert from "node:assert/strict";
import { buf, complaints } from "../../scripts/fleet_proto.ts";
import { AgentService } from "../../lib/fleet/gen/agent_pb.ts";
import { FailureSchema, RequestMetaSchema } from "../../lib/fleet/gen/common_pb.ts";
import { DispatcherService } from "../../lib/fleet/gen/dispatcher_pb.ts";
import { withTempDir } from "../helpers/temp.ts";

const ROOT = new URL("../../", import.meta.url).pathname;

Deno.test("[G-01] the contract is clean, its generated code fresh, and nothing released is broken", async () => {
  assert.deepEqual(await complaints(), []);
});

Deno.test("[G-01] a changed type of a released field is found", async () => {
  await withTempDir(async (dir) => {
    for (const { name } of Deno.readDirSync(`${ROOT}lib/fleet/proto`)) {
      await Deno.copyFile(`${ROOT}lib/fleet/proto/${name}`, `${dir}/${name}`);
    }
    const file = `${dir}/execution.proto`;
    const text = await Deno.readTextFile(file);
    const changed = text.replace("uint64 fencing_token = 3", "string fencing_token = 3");
    assert.notEqual(changed, text);
    await Deno.writeTextFile(file, changed);
    const { code, output } = await buf(["breaking", "--against", "released.binpb"], dir);
    assert.notEqual(code, 0);
    assert.match(output, /fencing_token/);
  });
});

Deno.test("[G-04] [G-05] [G-06] [G-07] [G-09] [G-10] [G-11] [G-12] [G-13] [G-14] every operation of the contract is there, with meta and failure", () => {
  const operations = [
    ["ActivateAgent", DispatcherService],
    ["GetBootstrap", DispatcherService],
    ["GetExecutionPermit", DispatcherService],
    ["ReportExecutionEvent", DispatcherService],
    ["RequestUpload", DispatcherService],
    ["CompleteUpload", DispatcherService],
    ["GetAgentStatus", AgentService],
    ["SetAdmissionState", AgentService],
    ["Execute", AgentService],
    ["ExecuteAuthorized", AgentService],
    ["QueryExecution", AgentService],
    ["ApplyTaskControl", AgentService],
    ["ApplyApprovedTaskControl", AgentService],
  ] as const;
  for (const [name, service] of operations) {
    const method = service.methods.find((one) => one.name === name);
    assert.ok(method, name);
    const field = (message: typeof method.input, number: string) =>
      message.fields.find((one) => one.name === number)?.message?.typeName;
    assert.equal(field(method.input, "meta"), RequestMetaSchema.typeName, name);
    assert.equal(field(method.output, "failure"), FailureSchema.typeName, name);
  }
});
