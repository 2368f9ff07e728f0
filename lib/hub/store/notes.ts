/** Notes on tasks and workplans: remarks, and requests for review that stop the work (K-04). */
import { TamqError } from "../../base/errors.ts";
import { LIMITS, type NewNote, type Note } from "../schema.ts";
import { time, unknown } from "./context.ts";

export function openReviews(notes: readonly Note[]): number {
  return notes.filter((note) => note.requests_review && note.resolved_at === null).length;
}

/** A note whose author is known. */
export type SignedNote = NewNote & { readonly author: string };

export function withNote(
  notes: readonly Note[],
  id: string,
  input: SignedNote,
  now: number,
): Note[] {
  if (notes.length >= LIMITS.notes) {
    throw new TamqError(
      "RESOURCE_EXHAUSTED",
      "too_many_notes",
      `there are ${LIMITS.notes} notes already`,
      { hint: "put further remarks into the description, or into a message" },
    );
  }
  return [...notes, {
    note_id: id,
    text: input.text,
    requests_review: input.requests_review,
    author: input.author,
    created_at: time(now),
    resolved_at: null,
  }];
}

/** The same list when the note is resolved already. */
export function withResolved(notes: readonly Note[], id: string, now: number): readonly Note[] {
  const found = notes.find((note) => note.note_id === id);
  if (found === undefined) throw unknown("note", "unknown_note", id);
  if (found.resolved_at !== null) return notes;
  return notes.map((note) => note === found ? { ...note, resolved_at: time(now) } : note);
}
