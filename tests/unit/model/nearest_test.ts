import assert from "node:assert/strict";
import { nearest } from "../../../lib/model/nearest.ts";

Deno.test("[E-07] the nearest registered names come first and far ones not at all", () => {
  const names = ["alpha", "beta", "betamax", "gamma", "railiance-apps", "railiance-api"];
  assert.deepEqual(nearest("betta", names), ["beta"]);
  assert.deepEqual(nearest("ahpla", ["alpha"]), []);
  assert.deepEqual(nearest("aplha", names), ["alpha"]);
  assert.deepEqual(nearest("BETA", names)[0], "beta");
  assert.deepEqual(nearest("railiance-aps", names), ["railiance-api", "railiance-apps"]);
  assert.deepEqual(nearest("zzz", names), []);
  assert.equal(nearest("a", ["a1", "a2", "a3", "a4"], 2).length, 2);
});
