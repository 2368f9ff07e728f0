/**
 * Runs `body` with a fresh 0700 directory that is removed afterwards, also after a failure; inside
 * `parent` when one is given.
 */
export async function withTempDir<T>(
  body: (dir: string) => T | Promise<T>,
  parent?: string,
): Promise<T> {
  // Short, since a socket path may hold at most 107 bytes.
  const dir = await Deno.makeTempDir({ prefix: "tamq-", dir: parent });
  try {
    return await body(dir);
  } finally {
    await Deno.remove(dir, { recursive: true });
  }
}
