import assert from "node:assert/strict";
import { loadSettings } from "../../lib/config.ts";
import { launchFor } from "../../lib/launch.ts";
import { withTempDir } from "../helpers/temp.ts";

Deno.test("[C-03, B-08] the quiet period of a rule comes before the profile's, the repository's before the command's", async () => {
  await withTempDir(async (dir) => {
    Deno.writeTextFileSync(
      `${dir}/c.toml`,
      "[commands.cat]\nquiet_seconds = 2\n[repositories.beta]\nquiet_seconds = 0.5\n",
    );
    const env: Record<string, string> = { HOME: dir, TAMQ_CONFIG: `${dir}/c.toml` };
    const settings = await loadSettings((name) => env[name]);
    const quiet = async (command: string, repo?: string) =>
      (await launchFor({ command: [command], repo }, settings, () => undefined)).profile
        .operatorQuietMs;
    assert.deepEqual(
      [await quiet("cat", "alpha"), await quiet("cat", "beta"), await quiet("claude", "beta")],
      [2000, 500, 500],
    );
    assert.deepEqual([await quiet("cat"), await quiet("bash", "alpha")], [2000, 300]);
  });
});
