/**
 * A full-screen agent: the alternate screen, absolute cursor moves, only changed cells painted, no
 * line feed ever; what scrolls off the top is gone. Glyphs, title and reports are those of the
 * `codex` profile. `say<…>` and `work<ms>` in a text as in `fake_chat.ts`.
 */
import { ByteLog, chunks, fakeOptions, KeyReader, print, size, wrapped } from "./fake_terminal.ts";

const options = fakeOptions();
const log = new ByteLog(options.log);
const transcript: string[] = ["", "  >_ Fake full-screen agent", ""];
let composer = "";
let working = false;
let painted: string[] = [];

function frame(): string[] {
  const { columns, rows } = size();
  const foot = [
    "",
    ...wrapped(composer === "" ? "Ask Codex to do anything" : composer, columns, "› ", "  "),
    "",
    "  fake default · ~",
  ];
  const middle = working ? ["", "• Working (1s • esc to interrupt)"] : [];
  const room = rows - foot.length - middle.length;
  const top = transcript.slice(-room);
  const body = [...top, ...Array<string>(Math.max(0, room - top.length)).fill("")];
  return [...body, ...middle, ...foot].slice(0, rows);
}

/** Paints what differs, from the first differing cell of each row on. */
function paint(whole = false): void {
  const next = frame();
  let out = "\x1b[?2026h";
  if (whole) {
    out += "\x1b[2J";
    painted = [];
  }
  for (const [y, row] of next.entries()) {
    const before = painted[y] ?? "";
    if (row === before) continue;
    let x = 0;
    while (x < row.length && row[x] === before[x]) x++;
    // Dim marks the hint in an empty composer.
    const hint = composer === "" && row.startsWith("› ");
    const text = hint
      ? `${row.slice(x, 2)}\x1b[2m${row.slice(Math.max(2, x))}\x1b[22m`
      : row.slice(x);
    out += `\x1b[${y + 1};${x + 1}H${text}\x1b[K`;
  }
  painted = next;
  print(out + "\x1b[?2026l");
}

function state(word: string): void {
  print(`\x1b]7501;state=${word}:app=codex\x1b\\`);
}

function submit(text: string): void {
  log.event("submitted", text);
  const { columns } = size();
  transcript.push("", ...wrapped(text, columns, "› ", "  "), "");
  const say = /say<(.*)>/s.exec(text)?.[1]?.replaceAll("To.:", "To:").replaceAll("\\n", "\n") ??
    `ok ${text.length}.`;
  working = true;
  state("working");
  paint();
  setTimeout(() => {
    working = false;
    transcript.push(...wrapped(say, columns, "• ", "  "), "", "  Worked for <1s • 12:00");
    state("done");
    paint();
    log.event("answered", say);
  }, Number(/work<(\d+)>/.exec(text)?.[1] ?? 60));
}

Deno.stdin.setRaw(true);
print("\x1b[?1049h\x1b[?2004h");
state("idle");
paint(true);
log.event("ready");
Deno.addSignalListener("SIGWINCH", () => paint(true));
const reader = new KeyReader();
for await (const chunk of chunks(log)) {
  for (const key of reader.read(chunk)) {
    if (key.kind === "interrupt") {
      print("\x1b[?2004l\x1b[?1049l");
      Deno.stdin.setRaw(false);
      Deno.exit(0);
    } else if (key.kind === "text" || key.kind === "paste") composer += key.text;
    else if (key.kind === "backspace") composer = composer.slice(0, -1);
    else if (key.kind === "clear") composer = "";
    else if ((key.kind === "enter" || key.kind === "tab") && composer.trim() !== "") {
      submit(composer.trimEnd());
      composer = "";
    }
  }
  paint();
}
