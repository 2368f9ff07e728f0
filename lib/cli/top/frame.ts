/** The view of `tamq top` as rows, from a snapshot and the size of the terminal; pure. */
import { senderLabel } from "../../model/envelope.ts";
import type { WireMessage } from "../../protocol/schema.ts";
import { reasonWords } from "../attempt_words.ts";
import { displayWidth, relativeTime } from "../render.ts";
import { type Column, cutRow, fit, type Piece, type Row, tableRows } from "./rows.ts";
import type { Snapshot } from "./snapshot.ts";

export const SECTIONS = ["windows", "due", "failures", "messages"] as const;
export type Section = typeof SECTIONS[number];

export interface View {
  /** All sections, or one of them on the whole screen. */
  section: Section | "all";
  help: boolean;
  /** Whether texts of messages are shown. */
  texts: boolean;
  /** First row shown of a section on the whole screen. */
  scroll: number;
  /** Whether the service answers. */
  connected: boolean;
  /** Why what is shown is old; null when it is not. */
  trouble: string | null;
}

export interface Size {
  readonly columns: number;
  readonly rows: number;
}

export const KEYS: readonly (readonly [string, string])[] = [
  ["q", "quit (also Ctrl-C)"],
  ["?", "this help, and back"],
  ["1", "all sections"],
  ["2", "windows: which take messages, and why others do not"],
  ["3", "due: being written, to be tried again, to be acknowledged"],
  ["4", "failures"],
  ["5", "the last messages"],
  ["t", "show texts of messages, or hide them"],
  ["j k", "scroll one section (also arrows, page up and down, g, G)"],
];

/** Exactly `size.rows` rows, none wider than `size.columns`. */
export function frame(
  snapshot: Snapshot | undefined,
  view: View,
  size: Size,
  now: number,
): readonly Row[] {
  const { columns, rows } = size;
  const head = heading(snapshot, view, size, now);
  const foot = footer(view);
  const room = Math.max(0, rows - head.length - 1);
  const body = view.help
    ? helpRows(columns)
    : snapshot === undefined
    ? [[{ text: "reading …" }]]
    : view.section === "all"
    ? overview(snapshot, view, columns, room, now)
    : whole(snapshot, view, view.section, columns, room, now);
  const filled = [...head, ...body.slice(0, room)];
  while (filled.length < rows - 1) filled.push([]);
  return [...filled.slice(0, Math.max(0, rows - 1)), foot].map((row) => cutRow(row, columns));
}

function heading(
  snapshot: Snapshot | undefined,
  view: View,
  { columns, rows }: Size,
  now: number,
): Row[] {
  const title: Piece[] = [{ text: "tamq top", style: "bold" }];
  if (!view.connected) {
    title.push({ text: "  the service has ended; waiting for it", style: "red" });
  } else if (view.trouble !== null) title.push({ text: `  ${view.trouble}`, style: "red" });
  else if (snapshot !== undefined) {
    const { service, controls } = snapshot.status;
    const age = relativeTime(service.started_at, now).replace(/ ago$/, "");
    title.push({ text: `  service ${service.pid}, up ${age}` });
    if (controls.paused_at !== null) title.push({ text: "  PAUSED", style: "yellow" });
  }
  if (snapshot === undefined) return [title];
  const { queue, leases, controls } = snapshot.status;
  const count = (state: string) => queue.states[state] ?? 0;
  // Of an older service it is not known how many of them were withdrawn.
  const failed = count("failed") - (queue.cancelled ?? 0);
  const held = controls.held.reduce((sum, pair) => sum + pair.messages, 0);
  const blocked = controls.blocked.length;
  const numbers: [string, number, Piece["style"]][] = [
    ["waiting", count("pending"), undefined],
    ["being written", leases.active, undefined],
    ["to be acknowledged", count("awaiting_ack"), undefined],
    ["failed", failed, failed > 0 ? "red" : undefined],
    ["held", held, held > 0 ? "yellow" : undefined],
    ["blocked pairs", blocked, blocked > 0 ? "red" : undefined],
    ["injected", count("injected"), "dim"],
    ["acknowledged", count("acknowledged"), "dim"],
  ];
  // On a narrow terminal what is zero says nothing.
  const shown = columns < 100 ? numbers.filter(([, n]) => n > 0) : numbers;
  const line: Row = shown.length === 0
    ? [{ text: "no messages", style: "dim" }]
    : shown.map(([name, n, style], i) => ({ text: `${i > 0 ? "  " : ""}${n} ${name}`, style }));
  return rows < 12 ? [title, line] : [title, line, []];
}

function footer(view: View): Row {
  const text = view.help
    ? " ? back   q quit"
    : " q quit  ? help  1 all  2 windows  3 due  4 failures  5 messages  t texts";
  return [{ text, style: "reverse" }];
}

function helpRows(columns: number): Row[] {
  return KEYS.map(([key, does]) => [
    { text: `  ${key.padEnd(5)}`, style: "bold" as const },
    { text: fit(does, columns - 7) },
  ]);
}

interface Content {
  readonly title: string;
  readonly columns: readonly Column[];
  readonly rows: readonly (readonly Piece[])[];
  /** Behind each row of the table, when texts are shown. */
  readonly texts?: readonly string[];
  readonly nothing: string;
}

/** Sections one under another; each gets what it needs as far as there is room for the others. */
function overview(
  snapshot: Snapshot,
  view: View,
  width: number,
  room: number,
  now: number,
): Row[] {
  const contents = SECTIONS.map((section) => content(snapshot, view, section, now))
    .filter((one, index) => one.rows.length > 0 || index === 0 || index === 3);
  // A section is its header, its rows and an empty row; the last ones go when it gets too narrow.
  let kept = contents;
  const least = (n: number) => n * 2 + (n - 1);
  if (least(kept.length) > room) {
    kept = contents.filter((_, i) => i === 0 || i === contents.length - 1);
  }
  if (least(kept.length) > room) kept = kept.slice(0, 1);
  let left = room - kept.length - (kept.length - 1);
  const wanted = kept.map((one) => Math.max(1, one.rows.length * (one.texts ? 2 : 1)));
  const given = kept.map(() => 0);
  // Row by row in turn, so that a long section takes only what the others leave.
  while (left > 0) {
    const before = left;
    for (let i = 0; i < kept.length && left > 0; i++) {
      if (given[i]! >= wanted[i]!) continue;
      given[i]!++;
      left--;
    }
    if (left === before) break;
  }
  return kept.flatMap((one, i) => {
    const rows = sectionRows(one, width, given[i]!, 0);
    return i < kept.length - 1 ? [...rows, []] : rows;
  });
}

function whole(
  snapshot: Snapshot,
  view: View,
  section: Section,
  width: number,
  room: number,
  now: number,
): Row[] {
  const one = content(snapshot, view, section, now);
  view.scroll = Math.max(0, Math.min(view.scroll, one.rows.length - 1));
  return sectionRows(one, width, room - 1, view.scroll);
}

function sectionRows(one: Content, width: number, most: number, from: number): Row[] {
  if (one.rows.length === 0) {
    return [[{ text: one.title, style: "bold" }], [{ text: one.nothing, style: "dim" }]];
  }
  // Columns get their widths from the rows that are shown.
  const per = one.texts === undefined ? 1 : 2;
  const count = Math.min(one.rows.length - from, Math.ceil(most / per));
  const shown = one.rows.slice(from, from + count);
  const table = tableRows(one.columns, shown, width);
  const hidden = one.rows.length - count;
  const header = table.header.map(({ text }): Piece => ({ text, style: "bold" }));
  const mark = hidden > 0 ? `  (${count} of ${one.rows.length})` : "";
  const used = header.reduce((sum, { text }) => sum + displayWidth(text), 0);
  if (used + mark.length <= width) header.push({ text: mark, style: "dim" });
  const rows = table.rows.flatMap((row, i): Row[] => {
    const text = one.texts?.[from + i];
    return text === undefined ? [row] : [row, [{ text: `  │ ${text}`, style: "dim" }]];
  });
  return [header, ...rows.slice(0, most)];
}

function content(snapshot: Snapshot, view: View, section: Section, now: number): Content {
  switch (section) {
    case "windows":
      return windows(snapshot, now);
    case "due":
      return due(snapshot, view, now);
    case "failures":
      return failures(snapshot, view, now);
    case "messages":
      return messages(snapshot, view, now);
  }
}

function windows({ status, open, moreOpen }: Snapshot, now: number): Content {
  const waiting = new Map<string, number>();
  for (const { target_repo, state } of open) {
    if (state === "pending") waiting.set(target_repo, (waiting.get(target_repo) ?? 0) + 1);
  }
  const writing = new Set(open.filter(isLeased).map(({ target_repo }) => target_repo));
  const attached = status.endpoints.flatMap((endpoint) =>
    endpoint.attachments.map((window) => ({ ...window, endpoint: endpoint.endpoint_id }))
  );
  const depth = (repo: string): Piece => {
    const count = waiting.get(repo) ?? 0;
    return { text: `${count}${moreOpen ? "+" : ""}`, style: count > 0 ? "yellow" : "dim" };
  };
  const rows = attached.map((window): Piece[] => {
    const { open, reason } = window.gate;
    const state: Piece = writing.has(window.repo)
      ? { text: "being written to", style: "green" }
      : open
      ? { text: "ready", style: "green" }
      : { text: `busy: ${reasonWords(reason ?? "not open yet")}`, style: "yellow" };
    return [
      { text: window.repo },
      state,
      depth(window.repo),
      window.recording ? { text: `RECORDED ${window.mode}`, style: "red" } : { text: window.mode },
      { text: relativeTime(window.attached_at, now).replace(/ ago$/, "") },
      { text: window.endpoint },
      { text: window.command.join(" ") },
    ];
  });
  const there = new Set(attached.map(({ repo }) => repo));
  const away = [...waiting.keys()].filter((repo) => !there.has(repo)).map((repo): Piece[] => [
    { text: repo },
    { text: "no window", style: "red" },
    depth(repo),
    ...["", "", "", ""].map((text) => ({ text })),
  ]);
  return {
    title: "WINDOWS",
    columns: [
      { title: "WINDOW", least: 8, most: 30, rank: 0 },
      { title: "STATE", least: 22, most: 48, rank: 1 },
      { title: "QUEUE", least: 5, most: 6, rank: 2, right: true },
      { title: "MODE", least: 9, most: 16, rank: 5 },
      { title: "SINCE", least: 5, most: 8, rank: 4 },
      { title: "ENDPOINT", least: 12, most: 20, rank: 6 },
      { title: "COMMAND", least: 8, most: 60, rank: 3 },
    ],
    rows: sorted([...rows, ...away]),
    nothing: "none is open; open some with: tamq --command CMD REPO...",
  };
}

function sorted(rows: Piece[][]): Piece[][] {
  const name = (row: Piece[]) => row[0]!.text;
  return rows.sort((a, b) => name(a) < name(b) ? -1 : name(a) > name(b) ? 1 : 0);
}

const isLeased = (message: WireMessage) => message.lease_expires_at !== null;

function due({ open }: Snapshot, view: View, now: number): Content {
  const when = (message: WireMessage) =>
    message.lease_expires_at ?? message.next_attempt_at ?? message.ack_deadline_at;
  const list = open.filter((message) => when(message) !== null)
    .sort((a, b) => when(a)! < when(b)! ? -1 : 1);
  return {
    title: "DUE",
    columns: [
      { title: "DUE", least: 7, most: 10, rank: 0 },
      { title: "FROM → TO", least: 12, most: 40, rank: 1 },
      { title: "WHAT", least: 9, most: 50, rank: 2 },
      { title: "TRIES", least: 5, most: 6, rank: 4 },
      { title: "ID", least: 12, most: 12, rank: 3 },
    ],
    rows: list.map((message) => [
      { text: relativeTime(when(message)!, now) },
      { text: route(message) },
      dueWords(message),
      { text: `${message.attempt_count}/${message.max_attempts}` },
      { text: message.message_id.slice(0, 12), style: "dim" },
    ]),
    texts: texts(list, view),
    nothing: "nothing is being written, tried again or waited for",
  };
}

function dueWords(message: WireMessage): Piece {
  if (isLeased(message)) return { text: "lease: being written", style: "green" };
  if (message.state === "awaiting_ack") return { text: "acknowledgement" };
  const why = message.last_failure_reason;
  return { text: why === null ? "retry" : `retry: ${reasonWords(why)}`, style: "yellow" };
}

function failures({ failed }: Snapshot, view: View, now: number): Content {
  return {
    title: "FAILURES",
    columns: [
      { title: "FAILED", least: 7, most: 10, rank: 0 },
      { title: "FROM → TO", least: 12, most: 40, rank: 1 },
      { title: "WHY", least: 9, most: 60, rank: 2 },
      { title: "ID", least: 12, most: 12, rank: 3 },
    ],
    rows: failed.map((message) => [
      { text: relativeTime(message.updated_at, now) },
      { text: route(message) },
      { text: reasonWords(message.last_failure_reason ?? "unknown"), style: "red" },
      { text: message.message_id.slice(0, 12), style: "dim" },
    ]),
    texts: texts(failed, view),
    nothing: "none",
  };
}

function messages({ latest }: Snapshot, view: View, now: number): Content {
  return {
    title: "LAST MESSAGES",
    columns: [
      { title: "MESSAGE", least: 7, most: 10, rank: 0 },
      { title: "FROM → TO", least: 12, most: 40, rank: 1 },
      { title: "STATE", least: 9, most: 50, rank: 2 },
      { title: "ID", least: 12, most: 12, rank: 3 },
    ],
    rows: latest.map((message) => [
      { text: relativeTime(message.created_at, now) },
      { text: route(message) },
      stateWords(message),
      { text: message.message_id.slice(0, 12), style: "dim" },
    ]),
    texts: texts(latest, view),
    nothing: "none yet; send one with: tamq send 'To:REPO: TEXT'",
  };
}

function stateWords(message: WireMessage): Piece {
  const { state, waiting_reason, last_failure_reason } = message;
  if (state === "failed") {
    return { text: `failed: ${reasonWords(last_failure_reason ?? "unknown")}`, style: "red" };
  }
  if (state !== "pending") return { text: state, style: "green" };
  if (isLeased(message)) return { text: "being written", style: "green" };
  const why = waiting_reason ?? "queued";
  return { text: `waits: ${WAITING_WORDS[why] ?? reasonWords(why)}`, style: "yellow" };
}

const WAITING_WORDS: Readonly<Record<string, string>> = {
  queued: "its turn",
  not_attached: "no window",
  ambiguous_endpoint: "several windows: send with --endpoint",
  backoff: "the next try",
  broker_silent: "the window's broker",
  paused: "tamq resume",
  "held: not allowed": "tamq allow",
  "held: the window takes what is released": "tamq release",
};

function route(message: WireMessage): string {
  return `${senderLabel(message.sender_repo, message.provenance)} → ${message.target_repo}`;
}

function texts(list: readonly WireMessage[], view: View): string[] | undefined {
  return view.texts ? list.map(({ body }) => body.slice(0, 500).toWellFormed()) : undefined;
}
