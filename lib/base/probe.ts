/**
 * Named points where tests listen or inject faults. In production nothing is registered and
 * `probe()` is one map look-up on an empty map.
 */
const hooks = new Map<string, (detail?: unknown) => void>();

/** Calls the hook that a test set at `name`, if any. What the hook throws propagates on purpose. */
export function probe(name: string, detail?: unknown): void {
  if (hooks.size > 0) hooks.get(name)?.(detail);
}

/** Sets a hook; returns the function that removes it. For tests only. */
export function onProbe(name: string, hook: (detail?: unknown) => void): () => void {
  hooks.set(name, hook);
  return () => {
    if (hooks.get(name) === hook) hooks.delete(name);
  };
}
