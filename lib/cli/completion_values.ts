/**
 * Values of arguments and options that are not in the command table: files, message ids, addresses,
 * names of commands (C-04).
 */
import { displaySafe } from "../base/display.ts";
import type { MessageState } from "../model/message.ts";
import { senderLabel } from "../model/envelope.ts";
import { type AnyCommand, isFamily, type Option } from "./command.ts";
import type { CliContext } from "./context.ts";
import { HELP_TOPICS } from "./help_topics.ts";
import { optionName } from "./likely.ts";
import { repoNames } from "./parameters.ts";
import { COMMANDS, FAMILIES, findCommand, HIDDEN } from "./program.ts";
import { ask } from "./verbs/service.ts";

export interface Candidate {
  readonly word: string;
  readonly brief: string;
}

/** The shell is to complete a file's name itself. */
export const FILES = "files";

/** States that a command of message ids is for. */
const ID_STATES: Readonly<Record<string, readonly MessageState[] | "any">> = {
  message: "any",
  show: "any",
  ack: ["pending", "awaiting_ack", "injected", "failed"],
  retry: ["failed"],
  cancel: ["pending"],
};
/** Enough to choose from; one answer of the service, read between two key presses. */
const RECENT = 100;
const SHOWN = 20;
const IDS_MS = 300;

/** What to propose for the last of `inputs`; undefined: what the command table says. */
export async function valueCandidates(
  inputs: readonly string[],
  context: CliContext,
): Promise<readonly Candidate[] | typeof FILES | undefined> {
  const lead = inputs.slice(0, -1);
  const partial = inputs.at(-1) ?? "";
  const found = findCommand(lead);
  if (found === undefined || isFamily(found.entry)) return undefined;
  const command = found.entry;
  const place = placeOf(command, lead.slice(found.depth), partial);
  if (place === undefined) return undefined;
  if (isFile(place)) return FILES;
  if (place.index !== 0) return undefined;
  const verb = lead.slice(0, found.depth).join(" ");
  if (verb === "help") return commandNames(partial);
  if (verb === "send" && !lead.some((word) => /^--to(=|$)/.test(word))) {
    return await addresses(partial, context);
  }
  const states = ID_STATES[verb];
  return states === undefined ? undefined : await messageIds(states, partial, context);
}

interface Place {
  /** Of an argument; undefined for the value of an option. */
  readonly index?: number;
  readonly placeholder?: string;
}

const isFile = ({ placeholder }: Place) => placeholder === "FILE" || placeholder === "PATH";

/** What the last word stands for; undefined for the name of an option. */
function placeOf(
  command: AnyCommand,
  words: readonly string[],
  partial: string,
): Place | undefined {
  const { positional } = command.parameters;
  const argument = (index: number): Place => ({
    index,
    placeholder: positional?.kind === "array"
      ? positional.parameter.placeholder
      : positional?.parameters[index]?.placeholder,
  });
  let index = 0;
  for (let i = 0; i < words.length; i++) {
    const word = words[i]!;
    if (word === "--") return argument(index + words.length - i - 1);
    if (!word.startsWith("-") || word === "-") {
      index++;
      continue;
    }
    const option = optionOf(command, word.replace(/=.*$/s, ""));
    if (option === undefined) return undefined; // nobody knows whether it takes a value
    if (word.includes("=") || !takesValue(option)) continue;
    if (++i === words.length) return { placeholder: option.placeholder };
  }
  if (!partial.startsWith("-") || partial === "-") return argument(index);
  const attached = /^(--[a-z-]+)=/.exec(partial)?.[1];
  return attached === undefined
    ? undefined
    : { placeholder: optionOf(command, attached)?.placeholder };
}

function optionOf(command: AnyCommand, word: string): Option | undefined {
  const { flags, aliases = {} } = command.parameters;
  const name = word.startsWith("--")
    ? Object.keys(flags).find((camel) => `--${optionName(camel)}` === word)
    : aliases[word.slice(1)];
  return name === undefined ? undefined : flags[name];
}

const takesValue = ({ kind }: Option) => kind === "parsed" || kind === "enum";

function commandNames(partial: string): Candidate[] {
  const commands = [...Object.entries(COMMANDS), ...Object.entries(FAMILIES)]
    .filter(([name]) => !HIDDEN.includes(name))
    .map(([word, { brief }]) => ({ word, brief }));
  const topics = HELP_TOPICS.map((word) => ({ word, brief: "topic" }));
  return [...commands, ...topics].filter(({ word }) => word.startsWith(partial));
}

/** `To:alpha:`; the text may follow as further words. */
async function addresses(partial: string, context: CliContext): Promise<Candidate[]> {
  const name = partial.startsWith("To:") ? partial.slice(3) : "";
  if (!partial.startsWith("To:") && !"To:".startsWith(partial)) return [];
  return (await repoNames.call(context, name))
    .map((repo) => ({ word: `To:${repo}:`, brief: "Repository to send to" }));
}

/** The latest messages of these states, with what tells them apart. */
async function messageIds(
  states: readonly MessageState[] | "any",
  partial: string,
  context: CliContext,
): Promise<Candidate[]> {
  const state = states.length === 1 ? { state: states[0] as MessageState } : {};
  const page = await ask(context, "history", { ...state, limit: RECENT }, { timeoutMs: IDS_MS })
    .catch(() => undefined);
  return (page?.messages ?? [])
    .filter(({ message_id, state }) =>
      message_id.startsWith(partial) && (states === "any" || states.includes(state))
    ).slice(0, SHOWN).map((message) => {
      const label = senderLabel(message.sender_repo, message.provenance);
      const text = [...message.body.slice(0, 100).split("\n")[0]!].slice(0, 40).join("");
      const brief = `${label} → ${message.target_repo}, ${message.state}: ${text}`;
      return { word: message.message_id, brief: displaySafe(brief) };
    });
}
