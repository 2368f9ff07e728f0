/** The little environment that a program under test needs to run under this runtime. */
export function runtimeEnv(more: Readonly<Record<string, string>> = {}): Record<string, string> {
  const env: Record<string, string> = { TERM: "xterm-256color", LANG: "C.UTF-8" };
  for (const name of ["PATH", "HOME", "DENO_DIR", "DENO_TLS_CA_STORE"]) {
    const value = Deno.env.get(name);
    if (value !== undefined) env[name] = value;
  }
  return { ...env, ...more };
}
