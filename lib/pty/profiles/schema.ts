/**
 * The shape of an agent profile (TOML) and the checked form the broker works with. A profile says
 * how one terminal program is started, spoken to and read; it holds no code.
 */
import { parse } from "smol-toml";
import * as z from "zod/mini";
import { errorText, TamqError } from "../../base/errors.ts";
import { nearest } from "../../model/nearest.ts";
import type { Profile } from "./plain.ts";

// Without a locale, zod/mini says "Invalid input" and no more.
z.config(z.locales.en());

/** Signs of one condition: patterns on the window title and on rows of the visible screen. */
export interface Signs {
  readonly titles: readonly RegExp[];
  readonly rows: readonly RegExp[];
}

/** How rows of the screen are told apart. Patterns match at the start of a row. */
export interface Grammar {
  /** Starts an item of the agent's own words. Undefined: rows without any mark are its words. */
  readonly reply: RegExp | undefined;
  /** Items that carry the reply's mark but are a tool's headline, tested behind the mark. */
  readonly toolHeads: readonly RegExp[];
  /** Columns before every further row of a reply. */
  readonly indent: number;
  /** Marks the echo of a user's text; rows after it count only from the next reply mark on. */
  readonly echo: RegExp | undefined;
  /** The echo's mark stands on each of its rows, so that unmarked rows after it are the agent's. */
  readonly echoEveryRow: boolean;
  /** Rows of tool output. */
  readonly tool: readonly RegExp[];
  /** Frames, status lines and all else that belongs to no item. */
  readonly chrome: readonly RegExp[];
  /** Columns that the agent leaves free at the right when it wraps at words. */
  readonly wrapMargin: number;
  /** It breaks long lines between ideographs, not only at blanks. */
  readonly wrapsWideAnywhere: boolean;
  /** It breaks long lines inside a word as well, behind any of these characters. */
  readonly breakAfter: string;
  /** Starts the row where the operator types; capture 1, if any, is the text. */
  readonly prompt: RegExp | undefined;
  /** What an empty composer shows; dim text counts as one without being listed. */
  readonly placeholders: readonly RegExp[];
  /** What stands in the composer for a long paste. */
  readonly pasted: readonly RegExp[];
  /** Starts a row that shows a text that waits until the agent is free. */
  readonly queued: RegExp | undefined;
}

/** A program with a terminal UI of its own. */
export interface AgentProfile extends Profile {
  readonly kind: "agent";
  /** Base names of commands that it is for. */
  readonly match: readonly string[];
  readonly launch: {
    /** Put behind the command's name, each unless the command line holds it already. */
    readonly flags: readonly string[];
    /** A first argument that is one of these means another mode: no flags are added. */
    readonly notWith: readonly string[];
    readonly env: Readonly<Record<string, string>>;
  };
  /** It may live on after its terminal is closed; its process group must be ended. */
  readonly outlivesTerminal: boolean;
  readonly input: {
    readonly paste: "bracketed" | "plain";
    /** Bytes that submit, as text. */
    readonly submit: string;
    /** Submits without interrupting while the agent is busy; undefined: `submit` does, or wait. */
    readonly busySubmit: string | undefined;
    /** `submit` while busy queues the text. */
    readonly queues: boolean;
    /** One space behind the text closes completion pop-ups and protects a final backslash. */
    readonly trailingSpace: boolean;
    /** Longer texts are pasted in pieces of at most so much, or reach the model altered. */
    readonly chunk: { readonly lines: number; readonly chars: number } | undefined;
  };
  readonly status: {
    /** It reports its state by OSC 7501. */
    readonly osc7501: boolean;
    readonly ready: Signs;
    readonly busy: Signs;
    readonly dialog: Signs;
  };
  readonly screen: Grammar;
}

const word = z.string().check(z.minLength(1), z.maxLength(200));
const words = z.array(word).check(z.maxLength(64));
const ms = (max: number) => z.int().check(z.minimum(0), z.maximum(max));
const pattern = z.string().check(
  z.minLength(1),
  z.maxLength(1000),
  z.refine(isPattern, { error: "is no regular expression (JavaScript, Unicode mode)" }),
);
const patterns = z.array(pattern).check(z.maxLength(64));
const signs = z.strictObject({ titles: z.optional(patterns), rows: z.optional(patterns) });

const schema = z.strictObject({
  name: z.string().check(
    z.regex(/^[a-z0-9][a-z0-9_-]{0,31}$/, {
      error: "must be 1 to 32 of a-z, 0-9, - and _, beginning with a letter or digit",
    }),
  ),
  match: words.check(z.minLength(1)),
  outlives_terminal: z.optional(z.boolean()),
  launch: z.optional(z.strictObject({
    flags: z.optional(words),
    not_with: z.optional(words),
    env: z.optional(z.record(
      z.string().check(z.regex(/^[A-Za-z_][A-Za-z0-9_]*$/, { error: "is no variable name" })),
      z.string().check(z.maxLength(4096)),
    )),
  })),
  input: z.optional(z.strictObject({
    paste: z.optional(z.enum(["bracketed", "plain"])),
    submit: z.optional(z.string().check(z.minLength(1), z.maxLength(8))),
    submit_delay_ms: z.optional(ms(5000)),
    typed_delay_ms: z.optional(ms(5000)),
    busy_submit: z.optional(z.string().check(z.minLength(1), z.maxLength(8))),
    queues: z.optional(z.boolean()),
    trailing_space: z.optional(z.boolean()),
    operator_quiet_ms: z.optional(ms(60_000)),
    startup_quiet_ms: z.optional(ms(60_000)),
    startup_max_ms: z.optional(ms(600_000)),
    chunk: z.optional(z.strictObject({
      lines: z.int().check(z.minimum(1), z.maximum(8192)),
      chars: z.int().check(z.minimum(16), z.maximum(8192)),
    })),
  })),
  status: z.optional(z.strictObject({
    osc_7501: z.optional(z.boolean()),
    ready: z.optional(signs),
    busy: z.optional(signs),
    dialog: z.optional(signs),
  })),
  screen: z.optional(z.strictObject({
    reply: z.optional(pattern),
    tool_heads: z.optional(patterns),
    indent: z.optional(z.int().check(z.minimum(0), z.maximum(16))),
    echo: z.optional(pattern),
    echo_every_row: z.optional(z.boolean()),
    tool: z.optional(patterns),
    chrome: z.optional(patterns),
    wrap_margin: z.optional(z.int().check(z.minimum(0), z.maximum(40))),
    wraps_wide_anywhere: z.optional(z.boolean()),
    break_after: z.optional(z.string().check(z.maxLength(16))),
    prompt: z.optional(pattern),
    placeholders: z.optional(patterns),
    pasted: z.optional(patterns),
    queued: z.optional(pattern),
  })),
});

type ProfileFile = z.infer<typeof schema>;

function isPattern(text: string): boolean {
  try {
    new RegExp(text, "u");
    return true;
  } catch {
    return false;
  }
}

/** Every key a profile may hold, dotted; for suggestions. */
const KEYS: readonly string[] = [
  ...Object.keys(schema.shape),
  ...["flags", "not_with", "env"].map((key) => `launch.${key}`),
  ...["paste", "submit", "submit_delay_ms", "typed_delay_ms", "busy_submit", "queues"],
  ...["trailing_space", "operator_quiet_ms", "startup_quiet_ms", "startup_max_ms", "chunk"],
  ...["osc_7501", "ready", "busy", "dialog"].map((key) => `status.${key}`),
  ...["reply", "tool_heads", "indent", "echo", "echo_every_row", "tool", "chrome"],
  ...[
    "wrap_margin",
    "wraps_wide_anywhere",
    "prompt",
    "placeholders",
    "pasted",
    "lines",
    "chars",
    "titles",
    "rows",
  ],
];

/**
 * Checks the text of a profile; `file` is how complaints name it. Throws `profile_invalid` with
 * file, key and what is allowed.
 */
export function parseProfile(text: string, file: string): AgentProfile {
  const fail = (message: string, hint?: string): never => {
    throw new TamqError("INVALID_ARGUMENT", "profile_invalid", `${file}: ${message}`, { hint });
  };
  let value: unknown;
  try {
    value = parse(text);
  } catch (error) {
    return fail(`not valid TOML: ${errorText(error).split("\n")[0]}`);
  }
  const result = z.safeParse(schema, value);
  if (!result.success) {
    const issue = result.error.issues[0]!;
    if (issue.code === "unrecognized_keys") {
      const key = issue.keys[0]!;
      const like = nearest(key, KEYS.map((known) => known.split(".").at(-1)!), 1)[0];
      const at = [...issue.path, key].join(".");
      return fail(`unknown key "${at}"`, like ? `did you mean "${like}"?` : undefined);
    }
    return fail(`${issue.path.join(".")}: ${issue.message}`);
  }
  const profile = toProfile(result.data);
  if (profile.screen.reply === undefined && profile.screen.echo !== undefined) {
    // Without a mark on the agent's rows, rows behind an echo could not be told from it.
    if (!profile.screen.echoEveryRow) {
      return fail(
        "screen.reply: missing, but screen.echo is set",
        "set screen.reply, or screen.echo_every_row = true",
      );
    }
  }
  return profile;
}

function toProfile(file: ProfileFile): AgentProfile {
  const { launch = {}, input = {}, status = {}, screen = {} } = file;
  const free = (text: string) => new RegExp(text, "u");
  const atStart = (text: string) => new RegExp(`^(?:${text})`, "u");
  const maybe = (text: string | undefined) => text === undefined ? undefined : atStart(text);
  const readSigns = (from: z.infer<typeof signs> = {}): Signs => ({
    titles: (from.titles ?? []).map(free),
    rows: (from.rows ?? []).map(free),
  });
  return {
    kind: "agent",
    name: file.name,
    match: file.match,
    outlivesTerminal: file.outlives_terminal ?? false,
    launch: { flags: launch.flags ?? [], notWith: launch.not_with ?? [], env: launch.env ?? {} },
    // Measured on four line editors of agents: 50 ms is lost in some tries, 200 ms in none of 20.
    pasteEnterMs: input.submit_delay_ms ?? 200,
    typedEnterMs: input.typed_delay_ms ?? 200,
    operatorQuietMs: input.operator_quiet_ms ?? 300,
    startupQuietMs: input.startup_quiet_ms ?? 500,
    startupMaxMs: input.startup_max_ms ?? 30_000,
    input: {
      paste: input.paste ?? "bracketed",
      submit: input.submit ?? "\r",
      busySubmit: input.busy_submit,
      queues: input.queues ?? false,
      trailingSpace: input.trailing_space ?? true,
      chunk: input.chunk,
    },
    status: {
      osc7501: status.osc_7501 ?? false,
      ready: readSigns(status.ready),
      busy: readSigns(status.busy),
      dialog: readSigns(status.dialog),
    },
    screen: {
      reply: maybe(screen.reply),
      toolHeads: (screen.tool_heads ?? []).map(atStart),
      indent: screen.indent ?? 0,
      echo: maybe(screen.echo),
      echoEveryRow: screen.echo_every_row ?? false,
      tool: (screen.tool ?? []).map(atStart),
      chrome: (screen.chrome ?? []).map(atStart),
      wrapMargin: screen.wrap_margin ?? 0,
      wrapsWideAnywhere: screen.wraps_wide_anywhere ?? false,
      breakAfter: screen.break_after ?? "",
      prompt: maybe(screen.prompt),
      placeholders: (screen.placeholders ?? []).map(atStart),
      pasted: (screen.pasted ?? []).map(free),
      queued: maybe(screen.queued),
    },
  };
}
