/**
 * A chat UI on the real Ink (React for terminals), which several agents are built on: finished items
 * in `<Static>`, composer and status below, redrawn by Ink's own differ. Glyphs and titles are
 * those of the `gemini` profile. `say<…>` and `work<ms>` in a text as in `fake_chat.ts`.
 *
 * Ink gives what one read returned as one key press: an Enter that arrives together with text is
 * part of that text.
 */
import "./interactive.ts";
import process from "node:process";
import { createElement as h, type ReactNode, useState } from "react";
import { Box, render, Static, Text, useApp, useInput, usePaste } from "ink";
import { ByteLog, fakeOptions } from "./fake_terminal.ts";

const log = new ByteLog(fakeOptions().log);
const encoder = new TextEncoder();
// Ink reads standard input itself: what it is given is logged on the way.
const read = process.stdin.read.bind(process.stdin);
process.stdin.read = (...args: Parameters<typeof read>) => {
  const chunk = read(...args);
  if (chunk !== null) log.received(typeof chunk === "string" ? encoder.encode(chunk) : chunk);
  return chunk;
};

interface Item {
  readonly kind: "user" | "agent";
  readonly text: string;
}

const title = (text: string) => process.stdout.write(`\x1b]0;${text} (fake)\x07`);

function marked(mark: string, indent: number, text: string): ReactNode {
  return h(
    Box,
    { marginTop: 1 },
    h(Box, { width: indent, flexShrink: 0 }, h(Text, null, mark)),
    h(Text, { wrap: "wrap" }, text),
  );
}

function Chat(): ReactNode {
  const { exit } = useApp();
  const [items, setItems] = useState<Item[]>([]);
  const [text, setText] = useState("");
  const [partial, setPartial] = useState<string>();
  const add = (item: Item) => setItems((all: Item[]) => [...all, item]);

  const submit = (said: string) => {
    log.event("submitted", said);
    add({ kind: "user", text: said });
    setText("");
    title("✦  Working…");
    setPartial("");
    const answer =
      /say<(.*)>/s.exec(said)?.[1]?.replaceAll("To.:", "To:").replaceAll("\\n", "\n") ??
        `ok ${said.length}.`;
    const work = Number(/work<(\d+)>/.exec(said)?.[1] ?? 0);
    const step = Math.max(1, Math.ceil(answer.length / 6));
    let shown = 0;
    const paint = () => {
      shown += step;
      if (shown < answer.length + step) {
        setPartial(answer.slice(0, shown));
        setTimeout(paint, 20);
        return;
      }
      setPartial(undefined);
      add({ kind: "agent", text: answer });
      title("◇  Ready");
      log.event("answered", answer);
    };
    setTimeout(paint, work);
  };

  usePaste((pasted: string) => setText((before: string) => before + pasted.replaceAll("\r", "\n")));
  useInput((input, key) => {
    if (key.ctrl && input === "c") exit();
    else if (key.return) {
      if (text.trim() !== "" && partial === undefined) submit(text.trimEnd());
    } else if (key.backspace || key.delete) setText((before: string) => before.slice(0, -1));
    else if (!key.ctrl && !key.meta) {
      setText((before: string) => before + input.replaceAll("\r", "\n"));
    }
  });

  const hint = "  Type your message or @path/to/file";
  return h(
    Box,
    { flexDirection: "column" },
    h(Static<Item>, {
      items,
      children: (item: Item, i: number) =>
        h(
          Box,
          { key: i },
          item.kind === "user" ? marked(" > ", 3, item.text) : marked("✦ ", 2, item.text),
        ),
    }),
    partial === undefined || partial === "" ? null : marked("✦ ", 2, partial),
    h(
      Box,
      { marginTop: 1 },
      h(Text, null, partial === undefined ? " " : " ⠋ Thinking (esc to cancel, 1s)"),
    ),
    h(Text, null, "─".repeat(process.stdout.columns ?? 80)),
    marked(" > ", 3, text === "" ? hint : text),
    h(Text, null, " workspace (fake)"),
  );
}

title("◇  Ready");
render(h(Chat), { exitOnCtrlC: false });
log.event("ready");
