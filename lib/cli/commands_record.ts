/** Commands about recordings of windows (B-15). */
import { command, family } from "./command.ts";
import type { CliContext } from "./context.ts";
import { late } from "./late.ts";
import { flag, json } from "./parameters.ts";
import type * as verbs from "./verbs/record.ts";
import type { JsonFlag } from "./verbs/service.ts";

const load = () => late("cli/verbs/record");

const recording = {
  parse: String,
  placeholder: "RECORDING",
  brief: "Its id or how it begins; a repository for its newest; a path with / for any file",
  proposeCompletions: proposals,
} as const;

/** Repositories that were recorded, then ids. */
async function proposals(this: CliContext, partial: string): Promise<string[]> {
  try {
    const found = await (await load()).recordings(this);
    const all = [...new Set(found.map(({ repo }) => repo)), ...found.map(({ id }) => id)];
    return all.filter((one) => one.startsWith(partial));
  } catch {
    return [];
  }
}

function positive(input: string): number {
  const value = /^\d{1,6}(?:\.\d{1,6})?$/.test(input) ? Number(input) : NaN;
  if (!(value > 0)) throw new Error("a number above 0 is wanted");
  return value;
}

const list = command<JsonFlag, []>({
  brief: "List the recordings, the oldest first",
  usage: ["[--json]"],
  examples: [{ run: "tamq record list", does: "what is there, and what is being recorded now" }],
  parameters: { flags: { json } },
  load: async () => ({ default: (await load()).list }),
});

const play = command<verbs.PlayFlags, [string]>({
  brief: "Show a recording as it happened",
  details:
    `Space pauses, q ends. What a recording could do to a terminal beside showing text (set its
clipboard or title, make it answer) is left out. Into a pipe it is written without waiting.`,
  usage: ["[--speed N] [--idle SECONDS] RECORDING"],
  examples: [
    { run: "tamq record play alpha", does: "the newest recording of alpha" },
    { run: "tamq record play --speed 4 --idle 1 alpha", does: "faster, no pause over a second" },
  ],
  parameters: {
    flags: {
      speed: {
        kind: "parsed",
        parse: positive,
        optional: true,
        placeholder: "N",
        brief: "So many times as fast (1)",
      },
      idle: {
        kind: "parsed",
        parse: positive,
        optional: true,
        placeholder: "SECONDS",
        brief: "Pauses are at most so long",
      },
    },
    positional: { kind: "tuple", parameters: [recording] },
  },
  load: async () => ({ default: (await load()).play }),
});

const exportCast = command<verbs.ExportCastFlags, [string, string?]>({
  brief: "Check a recording and write it to a file",
  details:
    `Every line is checked. The file is new, with mode 0600; without FILE, or with "-", it goes to
standard output. As it is ("cast") it is asciicast version 2, which asciinema and its players read.`,
  usage: ["[--format cast|raw] RECORDING [FILE]"],
  examples: [
    { run: "tamq record export alpha alpha.cast", does: "for asciinema play alpha.cast" },
    { run: "tamq record export --format raw alpha | less -R", does: "what was shown, at once" },
  ],
  parameters: {
    flags: {
      format: {
        kind: "enum",
        values: ["cast", "raw"],
        default: "cast",
        brief: "cast: asciicast v2; raw: the terminal's bytes without times",
      },
    },
    positional: {
      kind: "tuple",
      parameters: [recording, {
        parse: String,
        placeholder: "FILE",
        brief: "New file; - for standard output",
        optional: true,
      }],
    },
  },
  load: async () => ({ default: (await load()).exportCast }),
});

const remove = command<verbs.RemoveFlags, string[]>({
  brief: "Remove recordings",
  details:
    `Nothing else removes them, "tamq purge" neither. One that is being written is left alone.`,
  usage: ["RECORDING...", "--all [--yes]"],
  examples: [
    { run: "tamq record remove alpha", does: "the newest one of alpha" },
    { run: "tamq record remove --all", does: "every one, after a question" },
  ],
  parameters: {
    flags: {
      all: flag("Every recording that is not being written"),
      yes: flag("Do not ask"),
    },
    positional: { kind: "array", parameter: recording },
  },
  load: async () => ({ default: (await load()).remove }),
});

export const record = family("What windows showed, where they were opened with --record", {
  list,
  play,
  export: exportCast,
  remove,
});
