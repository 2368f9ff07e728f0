/** The programs and files around us: tmux, gita and its registry, the shell. */
import { TamqError } from "../../base/errors.ts";
import type { Env } from "../../config.ts";
import { gitaRegistry } from "../../gita.ts";
import { RESERVED_SENDERS } from "../../model/envelope.ts";
import { Tmux } from "../../tmux/client.ts";
import { requireCommand } from "../find_command.ts";
import { type Finding, hint, ok, problem, warning } from "./finding.ts";

export async function checkTmux(): Promise<Finding[]> {
  const tmux = new Tmux();
  await tmux.requireVersion();
  const { stdout } = await tmux.attempt("-V");
  return [ok("tmux", stdout.trim())];
}

export function checkGita(env: Env): Finding[] {
  const found: Finding[] = [];
  try {
    requireCommand("gita", env, ["/"]);
    found.push(ok("gita", "in PATH"));
  } catch (error) {
    if (!(error instanceof TamqError)) throw error;
    // Only its registry is read; without the program nobody can change it.
    found.push(warning("gita", "there is no program gita in PATH", "install it: pip install gita"));
  }
  const registry = gitaRegistry(env);
  const names = registry.names();
  const known = names.map((name) => [name, registry.find(name)] as const);
  const gone = known.filter(([, row]) => row === "unknown").map(([name]) => name);
  const twice = known.filter(([, row]) => row === "ambiguous").map(([name]) => name);
  const reserved = names.filter((name) => RESERVED_SENDERS.includes(name));
  const text = `${registry.source}: ${names.length} ` +
    (names.length === 1 ? "repository" : "repositories");
  found.push(
    names.length === 0
      ? warning("registry", text, "register the repositories: gita add PATH...")
      : ok("registry", text),
  );
  if (gone.length > 0) {
    found.push(
      warning(
        "registry",
        `folders that are gone or no repositories: ${gone.join(", ")}`,
        "bring them back, or remove the rows: gita rm NAME",
      ),
    );
  }
  if (twice.length > 0) {
    found.push(
      problem("registry", `names that stand twice: ${twice.join(", ")}`, "gita rename NAME NEW"),
    );
  }
  if (reserved.length > 0) {
    found.push(
      problem(
        "registry",
        `names that tamq keeps for itself: ${reserved.join(", ")}`,
        "gita rename NAME NEW",
      ),
    );
  }
  return found;
}

const RC_FILES: Readonly<Record<string, readonly string[]>> = {
  bash: [".bashrc", ".bash_profile", ".profile", ".bash_completion"],
  zsh: [".zshrc", ".zprofile"],
  fish: [".config/fish/completions/tamq.fish", ".config/fish/config.fish"],
};
const SET_UP: Readonly<Record<string, string>> = {
  bash: `add to ~/.bashrc: eval "$(tamq completion bash)"`,
  zsh: `add to ~/.zshrc, after compinit: eval "$(tamq completion zsh)"`,
  fish: "tamq completion fish > ~/.config/fish/completions/tamq.fish",
};

/** Whether Tab completes; found in the files that the shell reads, so only a hint when not. */
export function checkCompletion(env: Env): Finding[] {
  const shell = env("SHELL")?.split("/").at(-1) ?? "";
  const files = RC_FILES[shell];
  const home = env("HOME");
  if (files === undefined || home === undefined) return [];
  const mentions = files.some((file) => {
    try {
      return Deno.readTextFileSync(`${home}/${file}`).includes("tamq");
    } catch {
      return false;
    }
  });
  if (mentions) return [ok("completion", `set up for ${shell}`)];
  return [hint("completion", `Tab does not complete tamq in ${shell}`, SET_UP[shell]!)];
}
