/** `tamq serve` (L-01). */
export interface ServeFlags {
  readonly detach?: boolean;
  readonly quiet?: boolean;
  readonly verbose?: boolean;
  readonly json?: boolean;
  readonly detachedChild?: boolean;
}
