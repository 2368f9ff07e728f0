/** Sizes as people write them on a command line; decimal units, as in the service's advice. */
import { usageError } from "./errors.ts";

const UNITS: Readonly<Record<string, number>> = { "": 1, KB: 1e3, MB: 1e6, GB: 1e9, TB: 1e12 };

/** Bytes of `100MB`, `2GB`, `500000`; `option` names where it was given, for the complaint. */
export function parseSize(text: string, option: string): number {
  const match = /^(\d{1,12}(?:\.\d{1,3})?) ?([kmgt]?b?)$/i.exec(text);
  const letters = (match?.[2] ?? "").toUpperCase();
  const unit = UNITS[letters.length === 1 && letters !== "B" ? `${letters}B` : letters] ??
    (letters === "B" ? 1 : undefined);
  if (match !== null && unit !== undefined) {
    const bytes = Math.round(Number(match[1]) * unit);
    if (Number.isSafeInteger(bytes)) return bytes;
  }
  throw usageError(`${option} "${text}" is no size`, "write 100MB, 1.5GB, 500KB, or bytes");
}

/** `12.3 MB` */
export function megabytes(bytes: number): string {
  const mb = bytes / 1e6;
  if (bytes !== 0 && mb < 0.1) return `${Math.max(1, Math.round(bytes / 1000))} KB`;
  return `${mb.toFixed(mb < 100 ? 1 : 0).replace(/\.0$/, "")} MB`;
}
