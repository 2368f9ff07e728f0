/** Commands as the documentation shows them, so that tests can run or check every one. */

const ROOT = new URL("../../", import.meta.url).pathname;

export interface DocCommand {
  /** Path below the checkout. */
  readonly file: string;
  /** From 1. */
  readonly line: number;
  /** One command line, without its comment; continued lines are joined. */
  readonly text: string;
}

/** README, CONTRIBUTING and every page under docs/, in a fixed order. */
export function documentPages(): string[] {
  const below = (dir: string): string[] =>
    [...Deno.readDirSync(ROOT + dir)].sort((a, b) => a.name < b.name ? -1 : 1).flatMap((entry) => {
      const path = `${dir}/${entry.name}`;
      return entry.isDirectory ? below(path) : path.endsWith(".md") ? [path] : [];
    });
  return ["README.md", "CONTRIBUTING.md", ...below("docs")];
}

/** Languages of fenced blocks that hold commands; other fences (toml, json, text …) hold none. */
const SHELLS: ReadonlySet<string> = new Set(["sh", "bash", "console"]);

/**
 * Lines of fenced shell blocks, and of indented blocks those that begin with a known program.
 */
export function blockCommands(file: string): DocCommand[] {
  const lines = Deno.readTextFileSync(ROOT + file).split("\n");
  const found: DocCommand[] = [];
  let fence: string | undefined;
  let joined = "";
  let at = 0;
  const take = (text: string, line: number, indented: boolean) => {
    if (joined === "") at = line;
    if (text.endsWith("\\")) {
      joined += text.slice(0, -1).trimEnd() + " ";
      return;
    }
    const command = withoutComment((joined + text.trim()).trim());
    joined = "";
    if (command === "" || (indented && !isCommand(command))) return;
    found.push({ file, line: at, text: command });
  };
  lines.forEach((text, index) => {
    const mark = /^\s*```(\w*)/.exec(text);
    if (mark !== null) {
      fence = fence === undefined ? mark[1]! : undefined;
      return;
    }
    if (fence !== undefined) {
      if (SHELLS.has(fence)) take(text, index + 1, false);
    } else if (/^ {4,}\S/.test(text)) take(text, index + 1, true);
  });
  return found;
}

/** A comment begins with `#` behind two blanks, as all pages write it. */
function withoutComment(text: string): string {
  return text.replace(/(^|\s{2,})# .*$/, "").trimEnd();
}

/** Indented text is also that of lists: a line is a command when it begins with one of these. */
const PROGRAMS =
  /^(tamq|deno|sh|bash|git|gita|cd|rm|mkdir|export|systemctl|loginctl|\.ci\/\w+)( |$)/;

function isCommand(text: string): boolean {
  return PROGRAMS.test(text);
}

/** `tamq …` in running text and tables: between backquotes. */
export function inlineCommands(file: string): DocCommand[] {
  const found: DocCommand[] = [];
  let fence = false;
  Deno.readTextFileSync(ROOT + file).split("\n").forEach((text, index) => {
    if (/^\s*```/.test(text)) fence = !fence;
    if (fence || /^ {4,}\S/.test(text)) return;
    for (const [, code] of text.matchAll(/`(tamq(?: [^`]*)?)`/g)) {
      found.push({ file, line: index + 1, text: code!.replaceAll("\\|", "|") });
    }
  });
  return found;
}
