/** Every command that prints for people, on terminals of 40, 80 and 200 columns, and into a pipe. */
import assert from "node:assert/strict";
import { displayWidth } from "../../lib/base/display.ts";
import { runInside } from "../helpers/cli.ts";
import { CoordWorld } from "../helpers/coord_world.ts";

const LONG = "日本語の長い題名 with a long title, " + "word ".repeat(30);

Deno.test({
  name:
    "[C-01] what commands print for people fits 40, 80 and 200 columns, holds no escape with NO_COLOR, and is whole in a pipe",
  // Commands in this process look up windows by FFI; the library stays loaded.
  sanitizeResources: false,
  async fn() {
    await using coord = await CoordWorld.create(["alpha", "a-repository-with-quite-a-long-name"]);
    const { world } = coord;
    await coord.start();
    await world.open("cat", "alpha");
    await world.mustTamq(["send", "--to", "alpha", LONG]);
    await world.mustTamq(["send", "--to", "a-repository-with-quite-a-long-name", LONG]);
    const [delivered] = await world.untilHistory(
      2,
      (row) => row.target_repo !== "alpha" || row.state === "injected",
    );
    await coord.hub(
      "task",
      "add",
      LONG,
      "--repo",
      "alpha",
      "--id",
      "gated",
      "--ready",
      "--action",
      "destructive",
    );
    await coord.hub("message", "add", LONG, "--to", "alpha", "--body", LONG);
    await coord.until(
      "the gate",
      async () => (await coord.rows("coord", "triggers", "--state", "gated")).length > 0,
    );

    const commands = [
      ["status"],
      ["endpoints"],
      ["history"],
      ["inbox", "alpha"],
      ["inbox", "--full", "alpha"],
      ["message", delivered!.message_id],
      ["doctor"],
      ["logs"],
      ["config", "show"],
      ["profile", "list"],
      ["coord", "status"],
      ["coord", "triggers"],
      ["coord", "leases", "--all"],
      ["coord", "explain", "gated"],
      ["hub", "status"],
      ["hub", "task", "list"],
      ["hub", "task", "show", "gated"],
      ["hub", "message", "list"],
      ["service", "status"],
      ["help", "exit-codes"],
      ["help", "protocol"],
    ];
    for (const args of commands) {
      const name = args.join(" ");
      const run = async (columns?: number, env: Record<string, string> = {}) =>
        (await runInside(args, { env: { ...world.env, ...env }, columns })).stdout;
      const piped = await run();
      assert.notEqual(piped, "", name);
      // deno-lint-ignore no-control-regex
      assert.doesNotMatch(piped, /\u001b/, name);
      assert.doesNotMatch(piped, /…/, `${name}: nothing is cut in a pipe`);
      for (const columns of [40, 80, 200]) {
        const shown = await run(columns, { NO_COLOR: "1" });
        // deno-lint-ignore no-control-regex
        assert.doesNotMatch(shown, /\u001b/, name);
        if (args[0] === "help" || args[0] === "logs") continue; // prose and log lines wrap by themselves
        for (const line of shown.split("\n")) {
          // A word longer than the terminal (a path, an id) cannot be broken at a blank, but is broken.
          assert.ok(displayWidth(line) <= columns, `${name} at ${columns}: ${line}`);
        }
      }
    }
  },
});
