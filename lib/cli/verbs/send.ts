/** `tamq send` (B-07): an explicit message from any shell. */
import { errorText, TamqError } from "../../base/errors.ts";
import { newToken } from "../../base/ids.ts";
import { systemRandom } from "../../base/random.ts";
import { checkBody, decodeBody, MAX_BODY_BYTES } from "../../model/body.ts";
import { LOCAL_SENDER, parseAddress, unknownAddress } from "../../model/envelope.ts";
import type { Outcome } from "../../base/outcome.ts";
import type { BodyRefusal } from "../../model/body.ts";
import type { Verb } from "../command.ts";
import { type CliContext, readAtMost } from "../context.ts";
import { usageError } from "../errors.ts";
import { late } from "../late.ts";
import { ask } from "./service.ts";

export interface SendFlags {
  readonly to?: string;
  readonly file?: string;
  readonly endpoint?: string;
  readonly key?: string;
  readonly correlation?: string;
  readonly edit?: boolean;
  readonly json?: boolean;
}

const CLIENT = "tamq-cli";
/** One line feed at the end is dropped, so one byte more than a body may be read. */
const MAX_INPUT_BYTES = MAX_BODY_BYTES + 1;
/** For a first line that is the address: far beyond any name of a repository. */
const MAX_ADDRESS_BYTES = 4096;

const send: Verb<SendFlags, string[]> = async function (flags, ...words) {
  for (const name of ["to", "file", "endpoint", "key", "correlation"] as const) {
    if (flags[name] === "") throw usageError(`--${name} is empty`, `give a value, or leave it out`);
  }
  // Several words are one text, as echo has it: a forgotten quote must not cost the message.
  const text = words.length === 0 ? undefined : words.join(" ");
  if (wantsEditor(this, flags, text)) {
    const { writeMessage } = await late("cli/write_message");
    const draft = await writeMessage(this, flags.to, text);
    try {
      const { target, body } = flags.to === undefined
        ? await parseBlock(this, draft.text)
        : { target: flags.to, body: draft.text };
      await submit(this, flags, target, body);
    } catch (error) {
      throw draft.kept(error);
    }
    return draft.discard();
  }
  const { target, body } = await addressed(this, flags, text);
  await submit(this, flags, target, body);
};
export default send;

/** Asked for, or nothing at all is given and there is a person who can be shown an editor. */
function wantsEditor(context: CliContext, flags: SendFlags, text: string | undefined): boolean {
  const given = text !== undefined || flags.file !== undefined || flags.to !== undefined;
  if (flags.edit && flags.file !== undefined) {
    throw usageError("--edit and --file exclude each other", "leave one out");
  }
  if (flags.edit && !(context.stdinIsTerminal() && context.stdoutIsTerminal())) {
    throw usageError(
      "--edit needs a terminal",
      "give the text as an argument or on standard input",
    );
  }
  if (flags.edit) return true;
  return !given && context.stdinIsTerminal() && context.stdoutIsTerminal();
}

async function submit(
  context: CliContext,
  flags: SendFlags,
  target: string,
  body: string,
): Promise<void> {
  const key = flags.key ?? newToken(systemRandom);
  const sent = await ask(context, "send", {
    client_id: CLIENT,
    idempotency_key: key,
    sender_repo: LOCAL_SENDER,
    target_repo: target,
    provenance: "cli",
    body: accepted(checkBody(body)),
    ...flags.endpoint === undefined ? {} : { endpoint_id: flags.endpoint },
    ...flags.correlation === undefined ? {} : { correlation_id: flags.correlation },
  }).catch((error) => {
    throw withKey(error, key);
  });
  if (flags.json) return context.out(JSON.stringify(sent));
  context.out(sent.message_id);
  if (sent.deduplicated) context.err("tamq: sent before with this key; nothing new was sent");
}

const givenTwice = () =>
  usageError("the text is given twice, as an argument and by --file", "leave one out");

async function addressed(context: CliContext, flags: SendFlags, text: string | undefined) {
  refuseMangled(text);
  if (flags.to !== undefined) {
    if (text !== undefined && flags.file !== undefined) throw givenTwice();
    return { target: flags.to, body: text ?? await readText(context, flags.file) };
  }
  if (text !== undefined) {
    const { target, body } = await parseBlock(context, text);
    if (body === "") return { target, body: await readText(context, flags.file) };
    if (flags.file !== undefined) throw givenTwice();
    return { target, body };
  }
  // The first line of the file or of standard input is the address. A person is not asked to type it.
  const given = flags.file !== undefined || !context.stdinIsTerminal()
    ? await readText(context, flags.file, MAX_ADDRESS_BYTES)
    : "";
  if (given === "") {
    throw usageError("no repository is given", "tamq send 'To:REPO: TEXT', or tamq send --to REPO");
  }
  return await parseBlock(context, given);
}

/** Target and body of `To:REPO: text`, whose further lines belong to the body. */
async function parseBlock(context: CliContext, text: string) {
  const end = text.indexOf("\n");
  const first = end < 0 ? text : text.slice(0, end);
  const more = end < 0 ? "" : text.slice(end + 1);
  const names = needsNames(first, more) ? await registeredNames(context) : [];
  const known = parseAddress(first, names);
  // Who is registered is the service's to say (and whom to suggest): an unknown name goes there.
  const target = known?.target ?? unknownAddress(first);
  if (target === undefined) throw noAddress(first, names);
  const rest = known?.text ?? first.slice(`To:${target}:`.length).replace(/^[ \t]/, "");
  for (const [index, line] of more.split("\n").entries()) {
    const other = parseAddress(line, names)?.target;
    if (other === undefined) continue;
    throw usageError(
      `line ${index + 2} of the text addresses "${other}"; one command sends one message`,
      "send them one by one, or use --to REPO for a text that quotes such a line",
    );
  }
  return { target, body: rest === "" ? more : end < 0 ? rest : `${rest}\n${more}` };
}

/** Why `line` is no address, for the two mistakes that look most like one. */
function noAddress(line: string, names: readonly string[]): TamqError {
  const glued = names.filter((name) => line.startsWith(`To:${name}:`))
    .sort((a, b) => b.length - a.length)[0] ?? /^To:([^\s:][^:\n]{0,199}):\S/.exec(line)?.[1];
  if (glued !== undefined) {
    return usageError(
      `a blank must follow the second colon of "To:${glued}:"`,
      `write it: tamq send 'To:${glued}: TEXT'`,
    );
  }
  const loose = /^\s*to:\s*([^\s:]+):/i.exec(line)?.[1];
  return usageError(
    "the text does not begin with To:REPO: and a blank",
    loose === undefined
      ? "tamq send 'To:REPO: TEXT', or tamq send --to REPO TEXT"
      : `write it without a blank before the name: tamq send 'To:${loose}: TEXT'`,
  );
}

/**
 * Whether the registry decides where the name ends. In `To:alpha: text` there is one place where it
 * can end; reading the registry (1 ms) would tell nothing that the service does not check anyway.
 */
function needsNames(first: string, more: string): boolean {
  const name = unknownAddress(first);
  if (name === undefined || /^To:/m.test(more)) return true;
  return /:(?:[ \t]|$)/.test(first.slice(`To:${name}:`.length));
}

async function registeredNames(context: CliContext): Promise<readonly string[]> {
  const { gitaRegistry } = await late("gita");
  try {
    return gitaRegistry(context.env).names();
  } catch (error) {
    // The service reads the registry for itself and explains what is wrong with it.
    if (error instanceof TamqError) return [];
    throw error;
  }
}

/** `more`: bytes allowed beyond those of a body. The body itself is checked before it is sent. */
async function readText(
  context: CliContext,
  file: string | undefined,
  more = 0,
): Promise<string> {
  let bytes: Uint8Array | undefined;
  if (file === undefined || file === "-") {
    if (context.stdinIsTerminal()) {
      context.err("tamq: type the message; Ctrl-D on a new line ends it");
    }
    bytes = await context.readStdin(MAX_INPUT_BYTES + more);
  } else bytes = await readFile(file, MAX_INPUT_BYTES + more);
  if (bytes === undefined) {
    throw new TamqError(
      "INVALID_ARGUMENT",
      "body_too_large",
      `the message body has more than ${MAX_BODY_BYTES} bytes`,
      { hint: "send the path of the file, or split the text" },
    );
  }
  const text = accepted(decodeBody(bytes));
  // Here the lines are those of the file, also when its first one is the address.
  const checked = checkBody(text);
  if (!checked.ok && checked.error.reason === "body_binary") accepted(checked);
  return text.replace(/\n$/, "");
}

async function readFile(path: string, limit: number): Promise<Uint8Array | undefined> {
  let file: Deno.FsFile | undefined;
  try {
    file = await Deno.open(path);
    return await readAtMost(file, limit);
  } catch (cause) {
    const missing = cause instanceof Deno.errors.NotFound;
    throw new TamqError(
      missing ? "NOT_FOUND" : "INVALID_ARGUMENT",
      "file_unreadable",
      missing ? `there is no file ${path}` : `cannot read ${path}: ${errorText(cause)}`,
      { hint: "check the path and its permissions", cause },
    );
  } finally {
    file?.close();
  }
}

function accepted(checked: Outcome<string, BodyRefusal>): string {
  if (checked.ok) return checked.value;
  const { reason, message, hint } = checked.error;
  throw new TamqError("INVALID_ARGUMENT", reason, message, { hint });
}

/**
 * The runtime turns bytes of an argument that are not UTF-8 into U+FFFD. A text with that character
 * is compared with what the kernel has, so that a body is never changed silently (T-08).
 */
function refuseMangled(text: string | undefined): void {
  if (text === undefined || !text.includes("\ufffd")) return;
  let raw: Uint8Array;
  try {
    raw = Deno.readFileSync("/proc/self/cmdline");
  } catch {
    return;
  }
  accepted(decodeBody(raw));
}

/** A lost answer can be asked for again, but only by who knows the key. */
function withKey(error: unknown, key: string): unknown {
  if (!(error instanceof TamqError)) return error;
  if (error.reason !== "connection_lost" && error.reason !== "no_answer") return error;
  return new TamqError(error.code, error.reason, error.message, {
    hint: `the outcome is unknown; repeat it safely with: --key ${key}`,
    cause: error,
  });
}
