/**
 * Writes man/tamq.1 and a page for each command from the command table (C-01). A test fails while
 * they differ from what this makes: `deno task docs`.
 */
import manifest from "../deno.json" with { type: "json" };
import {
  type AnyCommand,
  type Argument,
  type Family,
  isFamily,
  type Option,
} from "../lib/cli/command.ts";
import { EXIT_MEANINGS } from "../lib/cli/exit_codes.ts";
import { COMMANDS, FAMILIES, GROUPS, HIDDEN } from "../lib/cli/program.ts";

const ROOT = new URL("../", import.meta.url).pathname;

/** What the table holds beyond what the parsers need. */
interface Described {
  readonly brief?: string;
  readonly placeholder?: string;
}

/** Text for roff: backslashes and hyphens as such, no line taken for a request. */
export function roff(text: string): string {
  return text.replaceAll("\\", "\\e").replaceAll("-", "\\-")
    .replaceAll("'", "\\(aq").replaceAll("`", "\\(ga").replaceAll("^", "\\(ha").replaceAll(
      "~",
      "\\(ti",
    )
    .replace(/^\./gm, "\\&.");
}

const bold = (text: string) => `\\fB${roff(text)}\\fR`;
const italic = (text: string) => `\\fI${roff(text)}\\fR`;

function item(head: string, text: string): string {
  return `.TP\n${head}\n${roff(text)}\n`;
}

/** Paragraphs; indented ones keep their lines. */
function prose(text: string): string {
  return text.split(/\n{2,}/).map((paragraph) =>
    /^ /.test(paragraph)
      ? `.PP\n.nf\n${roff(paragraph)}\n.fi\n`
      : `.PP\n${roff(paragraph.replaceAll("\n", " ").trim())}\n`
  ).join("").replace(/^\.PP\n/, "");
}

/** Placeholders in capitals are what the reader fills in; everything else is typed as it stands. */
function synopsis(usage: string): string {
  return usage.split(/\s+/).join(" ").split(/([A-Z][A-Z]+|\bN\b)/).map((part, i) =>
    i % 2 === 1 && part !== "TAMQ" ? italic(part) : roff(part)
  ).join("");
}

const kebab = (name: string) => name.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`);

function option(name: string, one: Option & Described, aliases: Readonly<Record<string, string>>) {
  const letter = Object.keys(aliases).find((key) => aliases[key] === name);
  const long = bold(`--${kebab(name)}`);
  const value = one.kind === "enum"
    ? ` ${one.values!.map(bold).join("|")}`
    : one.kind === "parsed"
    ? ` ${italic(one.placeholder ?? "VALUE")}`
    : "";
  const preset = one.kind === "enum" && one.default !== undefined
    ? `; by default ${one.default}`
    : "";
  return item(
    `${letter === undefined ? "" : `${bold(`-${letter}`)}, `}${long}${value}`,
    `${one.brief ?? ""}${preset}`,
  );
}

function argumentsOf(command: AnyCommand): readonly (Argument & Described)[] {
  const { positional } = command.parameters;
  if (positional === undefined) return [];
  return positional.kind === "array" ? [positional.parameter] : positional.parameters;
}

function head(title: string, brief: string, date: string): string {
  return `.\\" Made from the command table by: deno task docs
.TH ${
    title.toUpperCase().replaceAll("-", "\\-")
  } 1 "${date}" "tamq ${manifest.version}" "User Commands"
.SH NAME
${roff(title)} \\- ${roff(brief)}
`;
}

const HELP = item(`${bold("-h")}, ${bold("--help")}`, "Print this help") +
  item(`${bold("-V")}, ${bold("--version")}`, "Print the version");

/** The parts of a command's description that it has. */
function parts(name: string, command: AnyCommand) {
  const { flags, aliases = {} } = command.parameters;
  return {
    usage: command.usage.map((usage) => `${bold(`tamq ${name}`)} ${synopsis(usage)}`.trim()),
    given: argumentsOf(command).map((one) =>
      item(italic(one.placeholder ?? "ARGUMENT"), one.brief ?? "")
    ).join(""),
    options: Object.entries(flags).filter(([, one]) => one.hidden !== true)
      .map(([key, one]) => option(key, one, aliases)).join(""),
    examples: command.examples.map(({ run, does }) => item(bold(run), does)).join(""),
  };
}

const END = `.SH EXIT STATUS
0 on success; see
.BR tamq (1)
for the others.
.SH SEE ALSO
.BR tamq (1)
`;

const lowerFirst = (text: string) => text[0]!.toLowerCase() + text.slice(1);

function commandPage(name: string, command: AnyCommand, date: string): string {
  const { usage, given, options, examples } = parts(name, command);
  return `${head(`tamq-${name}`, lowerFirst(command.brief), date)}.SH SYNOPSIS
${usage.join("\n.br\n")}
.SH DESCRIPTION
${prose(command.details ?? `${command.brief}.`)}${
    given === "" ? "" : `.SH ARGUMENTS\n${given}`
  }.SH OPTIONS
${options}${HELP}.SH EXAMPLES
${examples}${END}`;
}

/** Commands of several words share the page of their first one. */
function familyPage(name: string, family: Family, date: string): string {
  const members = membersOf(name, family).map(([words, command]) => {
    const { usage, given, options, examples } = parts(words, command);
    return `.SS tamq ${roff(words)}
${usage.join("\n.br\n")}
.PP
${prose(command.details ?? `${command.brief}.`)}${given}${options}.PP
Examples:
${examples}`;
  });
  return `${head(`tamq-${name}`, lowerFirst(family.brief), date)}.SH SYNOPSIS
${bold(`tamq ${name}`)} ${italic("COMMAND")} [${italic("OPTIONS")}] [${italic("ARGUMENTS")}]
.SH DESCRIPTION
${roff(family.brief)}.
.SH OPTIONS
Every command takes these:
${HELP}.SH COMMANDS
${members.join("")}${END}`;
}

function membersOf(name: string, family: Family): [string, AnyCommand][] {
  return Object.entries(family.commands).flatMap(([word, entry]) =>
    isFamily(entry)
      ? membersOf(`${name} ${word}`, entry)
      : [[`${name} ${word}`, entry] as [string, AnyCommand]]
  );
}

const FILES: readonly (readonly [string, string])[] = [
  ["~/.config/tamq/config.toml", "Configuration; below $XDG_CONFIG_HOME if that is set"],
  [
    "~/.local/state/tamq/",
    "Messages, log and spool, readable by you alone; below $XDG_STATE_HOME if that is set",
  ],
  ["$XDG_RUNTIME_DIR/tamq.sock", "The socket of the message service; else /tmp/tamq.sock"],
  ["~/.config/systemd/user/tamq.service", "The unit of tamq service install"],
];

/** Each is read by lib/config.ts, lib/gita.ts or lib/cli; a test looks. */
export const ENVIRONMENT: readonly (readonly [string, string])[] = [
  ["TAMQ_CONFIG", "Path of the configuration file"],
  ["TAMQ_STATE_DIR", "Folder of messages, log and spool"],
  ["TAMQ_SOCKET", "Path of the message service's socket"],
  ["TAMQ_POLICY_PROFILE", "Name of the policy profile"],
  ["STATEHUB_API_BASE", "Where the State Hub answers"],
  ["NO_COLOR", "Set to anything: no colour, unless --color always is given"],
  ["VISUAL", "The editor of tamq send; else EDITOR, else vi"],
  ["EDITOR", "The editor of tamq send where VISUAL is not set"],
  ["GITA_PROJECT_HOME", "Where gita keeps its registry"],
];

function mainPage(date: string): string {
  const commands = GROUPS.map(([title, names]) =>
    `.SS ${title}\n${
      names.map((name) =>
        item(`${bold(`tamq ${name}`)}`, (COMMANDS[name] ?? FAMILIES[name])!.brief)
      ).join("")
    }`
  ).join("");
  const pages = GROUPS.flatMap(([, names]) => names).map((name) => `.BR tamq\\-${roff(name)} (1)`);
  return `${head("tamq", "durable messages between workers in tmux windows", date)}.SH SYNOPSIS
${bold("tamq --command")} ${italic("CMD")} [${bold("--mode")} ${italic("MODE")}] ${
    italic("REPO")
  }...
.br
${bold("tamq")} ${italic("COMMAND")} [${italic("OPTIONS")}] [${italic("ARGUMENTS")}]
.SH DESCRIPTION
${
    prose(
      `tamq opens a tmux window for each of your repositories and runs a coding agent or a shell in it. When a worker prints a block that begins with To:REPO: and ends with an empty line, the worker in the window of that repository receives it. Messages are stored before they are delivered, and wait while their target is away.

The names of repositories are those that gita lists.

Each command has a page of its own and explains itself with --help.`,
    )
  }.SH COMMANDS
${commands}.SH EXIT STATUS
${EXIT_MEANINGS.map(([status, text]) => item(bold(String(status)), text)).join("")}.SH ENVIRONMENT
${ENVIRONMENT.map(([name, text]) => item(bold(name), text)).join("")}.SH FILES
${FILES.map(([path, text]) => item(italic(path), text)).join("")}.SH SEE ALSO
${pages.join(" ,\n").replaceAll("(1) ,", "(1),")},
.BR tmux (1)
`;
}

/** Every page by its path in the checkout. */
export async function render(): Promise<Record<string, string>> {
  const changes = await Deno.readTextFile(`${ROOT}CHANGELOG.md`);
  const date = /^## \S+ \((\d{4}-\d\d-\d\d)\)/m.exec(changes)?.[1];
  if (date === undefined) throw new Error("CHANGELOG.md has no version with a date");
  const pages: Record<string, string> = { "man/tamq.1": mainPage(date) };
  for (const [name, command] of Object.entries(COMMANDS)) {
    if (!HIDDEN.includes(name)) pages[`man/tamq-${name}.1`] = commandPage(name, command, date);
  }
  for (const [name, family] of Object.entries(FAMILIES)) {
    pages[`man/tamq-${name}.1`] = familyPage(name, family, date);
  }
  return pages;
}

/** Writes the pages, and removes those of commands that are no more. */
export async function write(): Promise<void> {
  await Deno.mkdir(`${ROOT}man`, { recursive: true });
  const pages = await render();
  for (const entry of Deno.readDirSync(`${ROOT}man`)) {
    if (!(`man/${entry.name}` in pages)) await Deno.remove(`${ROOT}man/${entry.name}`);
  }
  for (const [path, text] of Object.entries(pages)) await Deno.writeTextFile(ROOT + path, text);
}

if (import.meta.main) await write();
