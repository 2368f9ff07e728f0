/** How things stand between an observer and its agent; passed on when another takes over (B-17). */

export interface Standing {
  /** The agent works, by its reports or else by signs. */
  working: boolean;
  /** It worked since the last commit at rest: something may be new. */
  worked: boolean;
  repainted: boolean;
  /** Cleared by a gap: what stands there may lack pieces. */
  trusted: boolean;
  repaintedSinceGap: boolean;
  /** Fingerprint of the last commit. */
  committed: string;
  /** Counts beginnings and ends of turns. */
  phase: number;
  alternateTold: boolean;
}

export function atFirst(): Standing {
  return {
    working: false,
    worked: false,
    repainted: false,
    trusted: true,
    repaintedSinceGap: true,
    committed: "",
    phase: 0,
    alternateTold: false,
  };
}
