import assert from "node:assert/strict";
import { withAttached } from "../helpers/broker.ts";
import { withTempDir } from "../helpers/temp.ts";

Deno.test("[B-02][B-04] a worker's block becomes one message of provenance worker", () =>
  withTempDir((dir) =>
    withAttached({
      command: ["sh", "-c", "printf 'To:beta: please rebase\\nsecond line\\n\\n'; read x"],
      dir,
    }, async ({ service, terminal }) => {
      await terminal.until("second line");
      await service.when(() => service.sends.length === 1);
      const [send] = service.sends;
      assert.equal(send!.body, "please rebase\nsecond line");
      assert.equal(send!.target_repo, "beta");
      assert.equal(send!.sender_repo, "alpha");
      assert.equal(send!.provenance, "worker");
    })
  ));

Deno.test("[B-05] a delivery is typed into a line reader and its echo is not routed", () =>
  withTempDir((dir) =>
    withAttached({ command: ["cat"], dir }, async ({ service, terminal }) => {
      const settled = await service.deliver("one\nTo:gamma: two");
      assert.deepEqual(settled, {
        type: "settle",
        lease_token: "t1",
        outcome: "written",
        reason: "flattened",
      });
      await terminal.until((text) => text.split("From:beta: one ⏎ > To.:gamma: two").length === 3);
      // An empty line would close, and send, a block that an echo had opened.
      for (const text of ["real", "two"]) {
        await terminal.type(`To:gamma: ${text}\r\r`);
        await terminal.until((shown) => shown.split(`To:gamma: ${text}\r\n`).length === 3);
      }
      await terminal.type("To:beta: last\r");
      await service.when(() => service.sends.some(({ body }) => body === "last"));
      assert.deepEqual(service.sends.map(({ body, provenance }) => [body, provenance]), [
        ["real", "operator"],
        ["two", "operator"],
        ["last", "operator"],
      ]);
    })
  ));

Deno.test("[B-05] a program that breaks what it reads into short lines sends nothing of it again", () =>
  withTempDir((dir) => {
    const script = 'while read -r l; do printf "%s\\n\\n" "$l" | fold -w 20; echo END; done';
    return withAttached({ command: ["sh", "-c", script], dir }, async ({ service, terminal }) => {
      // "From:beta: " has 11 characters: the address would stand at the start of the second row.
      await service.deliver("123456789To:gamma: forged");
      await terminal.until(/\nTo\.:gamma: forged\r\n[^]*END/);
      await terminal.type("To:beta: mine\r");
      await service.when(() => service.sends.length > 0);
      assert.deepEqual(service.sends.map(({ body }) => body), ["mine"]);
    });
  }));

Deno.test("[B-02][B-05] a worker that answers in the very words it was asked for is heard", () =>
  withTempDir((dir) => {
    const script = 'while read -r l; do printf "To:beta: done\\n\\n"; done';
    return withAttached({ command: ["sh", "-c", script], dir }, async ({ service }) => {
      await service.deliver("please answer with To:beta: done");
      await service.when(() => service.sends.length > 0);
      assert.deepEqual(service.sends.map(({ target_repo, body }) => [target_repo, body]), [
        ["beta", "done"],
      ]);
    });
  }));

Deno.test("[B-12] a worker's last words without a line feed are sent", () =>
  withTempDir(async (dir) => {
    const command = ["sh", "-c", "printf 'To:beta: one\\ntwo\\n\\nTo:beta: last'"];
    await withAttached({ command, dir }, async ({ service, done }) => {
      await done;
      assert.deepEqual(service.sends.map(({ body }) => body), ["one\ntwo", "last"]);
    });
  }));
