/** Repositories named on a command line, looked up all at once before anything happens (E-04, E-07). */
import { TamqError } from "../base/errors.ts";
import { RESERVED_SENDERS } from "../model/envelope.ts";
import { nearest } from "../model/nearest.ts";
import type { Registry, Repository } from "../model/ports.ts";

/** The repositories of these names, each once; throws on the first that cannot be opened. */
export function requireRepositories(
  registry: Registry,
  names: readonly string[],
): Repository[] {
  return [...new Set(names)].map((name) => {
    const found = registry.find(name);
    if (found === "unknown") throw unknown(registry, name);
    if (found === "ambiguous") {
      throw new TamqError(
        "FAILED_PRECONDITION",
        "ambiguous_repository",
        `two repositories are registered as "${name}" in ${registry.source}`,
        { hint: "give one another name: gita rename NAME NEW_NAME" },
      );
    }
    if (RESERVED_SENDERS.includes(name)) {
      throw new TamqError(
        "FAILED_PRECONDITION",
        "reserved_name",
        `"${name}" is a reserved name, and a repository is registered by it`,
        { hint: `give it another name: gita rename ${name} NEW_NAME` },
      );
    }
    // deno-lint-ignore no-control-regex
    if (/[\u0000-\u001f\u007f]/.test(name)) {
      throw new TamqError(
        "FAILED_PRECONDITION",
        "name_invalid",
        `the name "${name}" holds a control character and cannot be written in an address`,
        { hint: "give it another name in the registry" },
      );
    }
    return found;
  });
}

function unknown(registry: Registry, name: string): TamqError {
  const names = registry.names();
  const like = nearest(name, names).map((one) => `"${one}"`).join(", ");
  // A registered name is unknown only when its folder is gone or no git repository.
  const hint = names.includes(name)
    ? "its folder is gone or no git repository; mend it, or register it again: gita add PATH"
    : like !== ""
    ? `did you mean ${like}?`
    : "see the names with: gita ls; register one with: gita add PATH";
  return new TamqError(
    "NOT_FOUND",
    "unknown_repository",
    `no repository "${name}" is registered in gita`,
    { hint },
  );
}
