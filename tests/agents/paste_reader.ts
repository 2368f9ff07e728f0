/**
 * A program that edits its own line, as agents do: raw mode, bracketed paste, Enter submits. Writes
 * every submission so far, as JSON, into the file that its argument names.
 */
const [file] = Deno.args;
Deno.stdin.setRaw(true);
await Deno.stdout.write(new TextEncoder().encode("\x1b[?2004hREADY"));
const submitted: string[] = [];
let text = "", seen = "", pasting = false;
const decoder = new TextDecoder();
for await (const chunk of Deno.stdin.readable) {
  seen += decoder.decode(chunk, { stream: true });
  while (seen.length > 0) {
    const start = "\x1b[200~", end = "\x1b[201~";
    if (seen[0] === "\x1b" && seen.length < start.length) break;
    if (seen.startsWith(start) || seen.startsWith(end)) {
      pasting = seen.startsWith(start);
      seen = seen.slice(start.length);
      continue;
    }
    const char = seen[0]!;
    seen = seen.slice(1);
    if (char !== "\r" || pasting) {
      text += char;
      continue;
    }
    submitted.push(text);
    text = "";
    await Deno.writeTextFile(file!, JSON.stringify(submitted));
    await Deno.stdout.write(new TextEncoder().encode(`\r\nSUBMITTED ${submitted.length}\r\n`));
  }
}
