import type { Registry, Repository } from "../../lib/model/ports.ts";

/** A registry that tests fill: name to path, or `"ambiguous"`. */
export class FakeRegistry implements Registry {
  readonly source = "/fake/repos.csv";
  constructor(readonly repositories: Record<string, string>) {}
  names(): readonly string[] {
    return Object.keys(this.repositories);
  }
  find(name: string): Repository | "unknown" | "ambiguous" {
    const path = this.repositories[name];
    if (path === undefined) return "unknown";
    return path === "ambiguous" ? "ambiguous" : { name, path };
  }
}
