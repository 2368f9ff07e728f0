/**
 * Memory of the idle service: resident (RSS) and proportional (PSS: shared pages counted in shares),
 * after start and after 10,000 requests, beside an empty program under the same runtime.
 *
 *     deno run -A bench/service_memory.ts
 */
import { call } from "../lib/client.ts";
import { ServiceProcess, settingsIn } from "../tests/helpers/service.ts";
import { withTempDir } from "../tests/helpers/temp.ts";

function memory(pid: number): string {
  const text = Deno.readTextFileSync(`/proc/${pid}/smaps_rollup`);
  const mb = (name: string) => {
    const kb = new RegExp(`^${name}:\\s+(\\d+) kB`, "m").exec(text)?.[1];
    return (Number(kb) / 1024).toFixed(1).padStart(6);
  };
  return `RSS ${mb("Rss")} MB   PSS ${mb("Pss")} MB   private dirty ${mb("Private_Dirty")} MB`;
}

await withTempDir(async (dir) => {
  const empty = new Deno.Command(Deno.execPath(), {
    args: ["eval", "--no-config", "console.log(1); await Deno.stdin.read(new Uint8Array(1))"],
    stdin: "piped",
    stdout: "piped",
  }).spawn();
  const reader = empty.stdout.getReader();
  await reader.read();
  console.log(`empty program                ${memory(empty.pid)}`);
  await empty.stdin.close();
  await reader.cancel();
  await empty.status;

  const settings = await settingsIn(dir);
  await using service = await ServiceProcess.start(settings, {
    env: { TEST_REPOS: JSON.stringify({ beta: "/repos/beta" }) },
  });
  console.log(`service, just started        ${memory(service.pid)}`);
  for (let batch = 0; batch < 100; batch++) {
    await Promise.all(
      Array.from({ length: 100 }, (_, i) =>
        call(
          settings.socket,
          i % 2 === 0 ? "ping" : "send",
          i % 2 === 0 ? {} : {
            client_id: "bench",
            idempotency_key: `${batch}-${i}`,
            sender_repo: "local",
            target_repo: "beta",
            provenance: "cli",
            body: "a message of ordinary length, about eighty bytes, as workers write them",
          },
        )),
    );
  }
  console.log(`service, 10,000 requests     ${memory(service.pid)}`);
});
