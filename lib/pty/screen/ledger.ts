/**
 * Which of the blocks on a screen are new. A repaint shows old blocks again, in other places and
 * wrapped otherwise, so a block is known by what it says and where in the conversation it stands,
 * and counted: only occurrences above the number already seen are new.
 */
import type { Mark } from "./model.ts";
import type { FoundBlock } from "./transcript.ts";

/** Keys remembered at most; the oldest are forgotten first. */
const MAX_KEYS = 4096;
/** Marked lines at most: each costs the model work for every row that scrolls out. */
const MAX_MARKS = 512;

export interface CommitOptions {
  /** False: nothing can be new (no turn since the last commit); what stands there is taken in. */
  readonly send: boolean;
  /** The screen was repainted during this turn: one block may stand there twice. */
  readonly repainted: boolean;
  /** In the middle of a turn only some blocks are whole; the others wait for a later commit. */
  readonly whole?: (block: FoundBlock) => boolean;
  readonly mark: (line: number) => Mark | undefined;
}

export interface Commit {
  readonly fresh: FoundBlock[];
  /** Possibly new, possibly a repaint: never sent. */
  readonly ambiguous: FoundBlock[];
}

interface Known {
  readonly key: string;
  readonly content: string;
  readonly mark: Mark;
}

interface Counted {
  base: number;
  /** Occurrences at the last commit; one that was out of sight and is back may be old or new. */
  visible: number;
}

interface Candidate {
  readonly block: FoundBlock;
  readonly content: string;
  readonly key: string;
  readonly known: boolean;
  readonly orphan: boolean;
}

export class Ledger {
  readonly #counts = new Map<string, Counted>();
  /** Keys of equal content, to recognise a block whose user text is out of sight. */
  readonly #byContent = new Map<string, Set<string>>();
  #known: Known[] = [];
  /** Contents of the orphans of the commit under way. */
  readonly #orphansSeen: string[] = [];

  /** Takes the blocks of the whole buffer, in order; tells which are new. */
  commit(blocks: readonly FoundBlock[], options: CommitOptions): Commit {
    this.#settleMarks();
    const { whole } = options;
    const candidates = this.#candidates(blocks)
      .filter(({ known, block }) => known || whole === undefined || whole(block));
    const commit: Commit = { fresh: [], ambiguous: [] };
    const groups = new Map<string, Candidate[]>();
    for (const candidate of candidates) {
      if (candidate.orphan) {
        this.#orphan(candidate, options, commit);
        continue;
      }
      const group = groups.get(candidate.key);
      if (group === undefined) groups.set(candidate.key, [candidate]);
      else group.push(candidate);
    }
    if (whole === undefined) {
      for (const [key, counted] of this.#counts) if (!groups.has(key)) counted.visible = 0;
    }
    for (const [key, group] of groups) this.#count(key, group, options, commit);
    for (const content of this.#orphansSeen.splice(0)) {
      for (const key of this.#byContent.get(content) ?? []) {
        const counted = this.#counts.get(key)!;
        counted.visible = Math.max(counted.visible, 1);
      }
    }
    dropGhosts(candidates, commit, options.repainted);
    this.#remember(candidates, options);
    const order = (list: FoundBlock[]) => list.sort((a, b) => a.line - b.line);
    order(commit.fresh);
    order(commit.ambiguous);
    return commit;
  }

  /** After a gap: places mean nothing any more, counts stay. */
  lose(): void {
    for (const known of this.#known) known.mark.release();
    this.#settleMarks();
  }

  /** For who takes over, with the same rows on its screen (B-17). */
  save() {
    this.#settleMarks();
    const known = this.#known.map(({ key, content, mark }) => ({ key, content, line: mark.line }));
    return { counts: [...this.#counts], known };
  }
  restore(kept: ReturnType<Ledger["save"]>, mark: (line: number) => Mark | undefined): void {
    for (const [key, counted] of kept.counts) Object.assign(this.#counted(key), counted);
    for (const { key, content, line } of kept.known) {
      const found = mark(line);
      if (found !== undefined) this.#known.push({ key, content, mark: found });
    }
  }

  #count(key: string, group: Candidate[], options: CommitOptions, commit: Commit): void {
    const counted = this.#counted(key);
    const unseen = group.filter(({ known }) => !known);
    const excess = Math.min(unseen.length, Math.max(0, group.length - counted.base));
    // The last ones are the new ones: a conversation grows at its end.
    const fresh = excess === 0 ? [] : unseen.slice(-excess);
    if (options.send) {
      for (const { block } of fresh) {
        (block.uncertain ? commit.ambiguous : commit.fresh).push(block);
      }
      const back = options.whole === undefined && fresh.length === 0 && unseen.length > 0 &&
        group.length > counted.visible;
      if (back) commit.ambiguous.push(unseen.at(-1)!.block);
    }
    counted.base = Math.max(counted.base, group.length);
    // In the middle of a turn what is out of sight is not told apart from what is not whole yet.
    counted.visible = options.whole === undefined ? group.length : counted.visible + fresh.length;
  }

  #candidates(blocks: readonly FoundBlock[]): Candidate[] {
    const byLine = new Map(this.#known.map((known) => [known.mark.line, known]));
    return blocks.map((block) => {
      const content = contentOf(block);
      const known = byLine.get(block.line);
      if (known !== undefined && known.content === content) {
        return { block, content, key: known.key, known: true, orphan: false };
      }
      // Its place among the blocks of the reply is left out: the ones before may be out of sight.
      const unplaced = `${content} `;
      let key = block.prompt === undefined ? unplaced : unplaced + digest(block.prompt);
      // Seen before with its user text out of sight: this may be that one.
      if (!this.#counts.has(key) && this.#counts.has(unplaced)) key = unplaced;
      const orphan = block.prompt === undefined && this.#byContent.has(content);
      return { block, content, key, known: false, orphan };
    });
  }

  /**
   * A block whose user text is out of sight, and whose words were seen before: it may be any of the
   * earlier ones and is never counted. Told only when none of them was in sight at the last commit.
   */
  #orphan({ block, content }: Candidate, options: CommitOptions, commit: Commit): void {
    const counts = [...this.#byContent.get(content) ?? []].map((key) => this.#counts.get(key)!);
    const wasVisible = counts.some((counted) => counted.visible > 0);
    if (options.send && options.whole === undefined && !wasVisible) commit.ambiguous.push(block);
    this.#orphansSeen.push(content);
  }

  /** Marks that went: a block that scrolled out will not be counted again. */
  #settleMarks(): void {
    this.#known = this.#known.filter(({ key, mark }) => {
      if (mark.gone === "no") return true;
      const counted = this.#counts.get(key);
      if (counted !== undefined && mark.gone === "trimmed") {
        counted.base = Math.max(0, counted.base - 1);
        counted.visible = Math.max(0, counted.visible - 1);
      }
      return false;
    });
  }

  #remember(candidates: readonly Candidate[], options: CommitOptions): void {
    const lines = new Set(candidates.filter(({ known }) => known).map(({ block }) => block.line));
    this.#known = this.#known.filter((known) => {
      if (lines.has(known.mark.line)) return true;
      // Its row shows something else now: it was painted over, not scrolled out.
      known.mark.release();
      return false;
    });
    const marked = new Set(this.#known.map(({ mark }) => mark.line));
    for (const { block, content, key, orphan } of candidates.slice(-MAX_MARKS)) {
      if (marked.has(block.line) || orphan) continue;
      const mark = options.mark(block.line);
      if (mark !== undefined) this.#known.push({ key, content, mark });
    }
    while (this.#known.length > MAX_MARKS) this.#known.shift()!.mark.release();
  }

  #counted(key: string): Counted {
    let counted = this.#counts.get(key);
    if (counted !== undefined) this.#counts.delete(key); // moves to the end: recently seen
    else counted = { base: 0, visible: 0 };
    this.#counts.set(key, counted);
    const content = key.slice(0, key.indexOf(" "));
    const keys = this.#byContent.get(content);
    if (keys === undefined) this.#byContent.set(content, new Set([key]));
    else keys.add(key);
    if (this.#counts.size > MAX_KEYS) {
      const oldest = this.#counts.keys().next().value!;
      this.#counts.delete(oldest);
      const of = oldest.slice(0, oldest.indexOf(" "));
      const rest = this.#byContent.get(of);
      rest?.delete(oldest);
      if (rest?.size === 0) this.#byContent.delete(of);
    }
    return counted;
  }
}

/**
 * An answer that grew past the screen, or was painted while the size changed, leaves the beginning
 * of itself behind, and after a repaint all of it: within one reply the earlier copies are withheld.
 */
function dropGhosts(
  candidates: readonly Candidate[],
  commit: Commit,
  repainted: boolean,
): void {
  const blocks = candidates.map(({ block }) => block);
  const ghosts = commit.fresh.filter((block) => isOutgrown(block, blocks, repainted));
  for (const ghost of ghosts) {
    commit.fresh.splice(commit.fresh.indexOf(ghost), 1);
    commit.ambiguous.push(ghost);
  }
}

/** Whether a later block of the same reply says the same and goes on; or just the same, if `equal`. */
export function isOutgrown(
  block: FoundBlock,
  blocks: readonly FoundBlock[],
  equal: boolean,
): boolean {
  return blocks.some((other) => {
    if (other.line <= block.line || other.written !== block.written) return false;
    if (other.prompt !== block.prompt) return false;
    const more = other.bare.length - block.bare.length;
    return (more > 0 || (equal && more === 0)) && other.bare.startsWith(block.bare);
  });
}

function contentOf(block: FoundBlock): string {
  const target = block.target === undefined ? `?${block.written}` : block.target;
  return digest(`${target}\0${block.bare}`);
}

/** 53 bits (cyrb53): equal texts must agree, and a collision only withholds a message. */
export function digest(text: string): string {
  let a = 0xdeadbeef, b = 0x41c6ce57;
  for (let i = 0; i < text.length; i++) {
    const code = text.charCodeAt(i);
    a = Math.imul(a ^ code, 2654435761);
    b = Math.imul(b ^ code, 1597334677);
  }
  a = Math.imul(a ^ (a >>> 16), 2246822507) ^ Math.imul(b ^ (b >>> 13), 3266489909);
  b = Math.imul(b ^ (b >>> 16), 2246822507) ^ Math.imul(a ^ (a >>> 13), 3266489909);
  return (4294967296 * (2097151 & b) + (a >>> 0)).toString(36);
}

/** Equal while the same blocks stand in the same places. */
export function fingerprintOf(blocks: readonly FoundBlock[]): string {
  const parts = blocks.map((b) => `${b.line} ${b.written} ${b.ordinal} ${b.closed} ${b.body}`);
  return digest(parts.join("\0"));
}
