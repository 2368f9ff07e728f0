/** Where recordings lie: 0600 files in a 0700 folder of the state directory, bounded together (B-15). */
import { rfc3339 } from "../base/clock.ts";
import { TamqError } from "../base/errors.ts";
import { newToken } from "../base/ids.ts";
import type { Random } from "../base/random.ts";

/** No new recording is begun beyond this; nothing is ever removed but by the operator. */
export const MAX_ALL_BYTES = 1 << 30;
export const CAST = ".cast";

/**
 * A new file, locked for as long as it is written. Throws `recordings_full`, `recordings_unusable`,
 * and what the system says.
 */
export function createRecording(
  dir: string,
  repo: string,
  now: number,
  random: Random,
  maxAllBytes = MAX_ALL_BYTES,
): Deno.FsFile {
  Deno.mkdirSync(dir, { recursive: true, mode: 0o700 });
  const info = Deno.lstatSync(dir);
  if (!info.isDirectory || info.uid !== Deno.uid()) {
    throw new TamqError(
      "FAILED_PRECONDITION",
      "recordings_unusable",
      `${dir} is no directory of yours`,
      { hint: "move it away; a new one is made in its place" },
    );
  }
  if (((info.mode ?? 0) & 0o077) !== 0) Deno.chmodSync(dir, 0o700);
  let bytes = 0;
  for (const { name, isFile } of Deno.readDirSync(dir)) {
    if (isFile && name.endsWith(CAST)) bytes += Deno.lstatSync(`${dir}/${name}`).size;
  }
  if (bytes >= maxAllBytes) {
    throw new TamqError(
      "RESOURCE_EXHAUSTED",
      "recordings_full",
      `the recordings have ${Math.floor(bytes / (1 << 20))} MiB together`,
      { hint: "remove some: tamq record list, tamq record remove ID" },
    );
  }
  const time = rfc3339(now).replace(/[-:]|\.\d+/g, ""); // 20261201T101500Z
  // The name is for people; the header has the repository's.
  const label = repo.replace(/[^A-Za-z0-9._-]+/g, "_").slice(0, 60);
  const path = `${dir}/${time}-${label}-${newToken(random).slice(0, 6)}${CAST}`;
  const file = Deno.openSync(path, { createNew: true, write: true, mode: 0o600 });
  file.lockSync(true); // tells whoever lists it that it is being written
  return file;
}
