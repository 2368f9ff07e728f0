/**
 * The credential for a State Hub that is not the embedded one (K-16): from the service manager's
 * credential directory, else from the configured command. Never kept, never written anywhere.
 */
import { type Clock, systemClock, within } from "../base/clock.ts";
import { errorText, TamqError } from "../base/errors.ts";
import type { Env, Settings } from "../config.ts";

/** The file of `$CREDENTIALS_DIRECTORY` (systemd's `LoadCredential=`). */
export const CREDENTIAL_NAME = "statehub-token";
/** A locked key ring must not hold the engine's requests for ever. */
const COMMAND_MS = 10_000;
const FORM = /^[\x21-\x7e]{1,4096}$/;

/** Asked for at each request; undefined: no route is configured, the hub is asked without. */
export function hubCredential(
  settings: Pick<Settings, "stateHubCredential">,
  env: Env = Deno.env.get,
  clock: Clock = systemClock,
): (() => Promise<string>) | undefined {
  const directory = env("CREDENTIALS_DIRECTORY");
  const file = directory ? `${directory}/${CREDENTIAL_NAME}` : undefined;
  if (file !== undefined && exists(file)) {
    return () => Promise.resolve(check(Deno.readTextFileSync(file), file));
  }
  const argv = settings.stateHubCredential;
  if (argv === undefined) return undefined;
  return async () => check(await run(argv, clock), argv[0]!);
}

async function run(argv: readonly string[], clock: Clock): Promise<string> {
  const [program, ...args] = argv;
  let child: Deno.ChildProcess;
  try {
    child = new Deno.Command(program!, { args, stdin: "null", stdout: "piped", stderr: "null" })
      .spawn();
  } catch (cause) {
    throw missing(`the credential command cannot be run: ${errorText(cause)}`);
  }
  const output = await within(clock, COMMAND_MS, child.output(), () => {
    child.kill("SIGKILL");
    throw missing(`the credential command did not end within ${COMMAND_MS / 1000} seconds`);
  });
  if (!output.success) throw missing(`the credential command ended with status ${output.code}`);
  return new TextDecoder().decode(output.stdout);
}

function check(text: string, source: string): string {
  const line = text.split("\n")[0]!.trim();
  if (!FORM.test(line)) throw missing(`${source} gave no credential in its first line`);
  return line;
}

/** Says nothing of what was read. `UNAVAILABLE`: what is queued stays so and is tried again. */
function missing(message: string): TamqError {
  return new TamqError("UNAVAILABLE", "credential_unavailable", message, {
    hint: "check statehub.credential_command, or the service manager's credentials",
  });
}

function exists(path: string): boolean {
  try {
    return Deno.statSync(path).isFile;
  } catch {
    return false;
  }
}
