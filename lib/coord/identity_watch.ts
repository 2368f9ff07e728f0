/**
 * Gates of identity and authentication (K-04, K-09): no approval opens them, so they are decided
 * anew once what they are about has changed – the registry's row, or the window. Not before: nothing
 * is tried again for trying's sake.
 */
import type { Registry } from "../model/ports.ts";
import type { WireEndpoint } from "../protocol/schema.ts";
import { windowsOf } from "./facts.ts";
import type { CoordStore } from "./store/store.ts";

/** Reasons of {@link evaluate} that registry and windows alone give. */
export const IDENTITY_REASONS = [
  "repository_unregistered",
  "repository_ambiguous",
  "session_unauthenticated",
  "identity_mismatch",
  "identity_unknown",
] as const;

export class IdentityWatch {
  readonly #store: CoordStore;
  readonly #registry: Registry;
  /** Of each repository with such a gate: what registry and windows said at the last look. */
  #seen = new Map<string, string>();

  constructor(options: { store: CoordStore; registry: Registry }) {
    this.#store = options.store;
    this.#registry = options.registry;
  }

  /** Triggers whose facts have moved wait again; throws `registry_unavailable`. */
  async look(endpoints: readonly WireEndpoint[]): Promise<void> {
    const { triggers } = this.#store;
    const seen = new Map<string, string>();
    const moved: string[] = [];
    for (const repo of triggers.gatedRepos(IDENTITY_REASONS)) {
      const windows = windowsOf(endpoints, repo, null);
      const facts = JSON.stringify([
        this.#registry.find(repo),
        windows.map(({ attachment }) => [attachment.broker_pid, attachment.path]),
      ]);
      seen.set(repo, facts);
      // Also what was gated since the last look, or by an engine before this one: its facts may have
      // changed meanwhile.
      if (this.#seen.get(repo) !== facts) moved.push(repo);
    }
    this.#seen = seen;
    if (moved.length === 0) return;
    await this.#store.commit(() => {
      for (const repo of moved) triggers.decideAgain(repo, IDENTITY_REASONS);
    });
  }
}
