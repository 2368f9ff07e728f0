/** The names most like a mistyped one, best first; at most `limit` (E-07, C-01). */
export function nearest(word: string, names: Iterable<string>, limit = 3): string[] {
  const wanted = word.toLowerCase();
  const scored: { name: string; score: number }[] = [];
  for (const name of names) {
    const known = name.toLowerCase();
    const distance = editDistance(wanted, known);
    const contained = wanted.length > 2 && (known.includes(wanted) || wanted.includes(known));
    const bound = Math.max(1, Math.floor(Math.max(wanted.length, known.length) / 3));
    if (distance <= bound) scored.push({ name, score: distance });
    else if (contained) scored.push({ name, score: bound + 1 });
  }
  scored.sort((a, b) => a.score - b.score || (a.name < b.name ? -1 : 1));
  return scored.slice(0, limit).map((entry) => entry.name);
}

/** Damerau-Levenshtein distance (optimal string alignment): a swap of neighbours costs one. */
function editDistance(a: string, b: string): number {
  let before: number[] = [];
  let previous = Array.from({ length: b.length + 1 }, (_, j) => j);
  for (let i = 1; i <= a.length; i++) {
    const row = [i];
    for (let j = 1; j <= b.length; j++) {
      const cost = a[i - 1] === b[j - 1] ? 0 : 1;
      let best = Math.min(previous[j]! + 1, row[j - 1]! + 1, previous[j - 1]! + cost);
      if (i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1]) {
        best = Math.min(best, before[j - 2]! + 1);
      }
      row.push(best);
    }
    before = previous;
    previous = row;
  }
  return previous[b.length]!;
}
