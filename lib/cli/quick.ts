/**
 * Reads well-formed command lines without stricli, which costs 5 ms to load and start. Whatever is
 * unusual – an unknown or repeated option, a missing value, help – is left to it: here the answer is
 * either exactly what stricli would give, or undefined.
 */
import type { AnyCommand, Option } from "./command.ts";
import type { CliContext } from "./context.ts";

export interface Parsed {
  readonly flags: Readonly<Record<string, unknown>>;
  readonly args: readonly unknown[];
}

export function quickParse(
  context: CliContext,
  command: AnyCommand,
  words: readonly string[],
): Parsed | undefined {
  const { flags: options, aliases = {}, positional } = command.parameters;
  const flags: Record<string, unknown> = {};
  const texts: string[] = [];
  try {
    for (let i = 0; i < words.length; i++) {
      const word = words[i]!;
      if (word === "--") {
        texts.push(...words.slice(i + 1));
        break;
      }
      if (!word.startsWith("-")) {
        texts.push(word);
        continue;
      }
      // `--name`, `--name=value`, `-n`, `-n=value`; everything else is not for here.
      const match = /^(?:--([a-z][a-z-]*)|-([a-zA-Z]))(?:=(.+))?$/.exec(word);
      if (match === null) return undefined;
      const name = match[1] !== undefined ? camel(match[1]) : aliases[match[2]!];
      const option = name === undefined ? undefined : options[name];
      if (name === undefined || option === undefined || name in flags) return undefined;
      let value = match[3];
      if (option.kind === "boolean") {
        if (value !== undefined) return undefined;
        flags[name] = true;
        continue;
      }
      value ??= words[++i];
      if (value === undefined || (match[3] === undefined && /^-./s.test(value))) {
        return undefined;
      }
      flags[name] = optionValue(context, option, value);
    }
    for (const [name, option] of Object.entries(options)) {
      if (name in flags) continue;
      if (option.default !== undefined) {
        flags[name] = option.kind === "enum"
          ? option.default
          : optionValue(context, option, String(option.default));
      } else if (option.optional) flags[name] = undefined;
      else return undefined;
    }
    const args = argumentValues(context, positional, texts);
    return args && { flags, args };
  } catch {
    return undefined; // a value that its parser refuses: stricli says so
  }
}

function camel(name: string): string {
  return name.replace(/-([a-z])/g, (_, letter: string) => letter.toUpperCase());
}

function optionValue(context: CliContext, option: Option, text: string): unknown {
  if (option.variadic) throw new Error("not for here");
  if (option.kind === "enum" && option.values!.includes(text)) return text;
  if (option.kind === "parsed") return option.parse!.call(context, text);
  throw new Error("not for here");
}

function argumentValues(
  context: CliContext,
  positional: AnyCommand["parameters"]["positional"],
  texts: readonly string[],
): unknown[] | undefined {
  if (positional === undefined) return texts.length === 0 ? [] : undefined;
  if (positional.kind === "array") {
    const { parameter, minimum = 0, maximum = Infinity } = positional;
    if (texts.length < minimum || texts.length > maximum) return undefined;
    return texts.map((text) => parameter.parse.call(context, text));
  }
  if (texts.length > positional.parameters.length) return undefined;
  const values: unknown[] = [];
  for (const [i, parameter] of positional.parameters.entries()) {
    const text = texts[i] ?? parameter.default;
    if (text !== undefined) values.push(parameter.parse.call(context, text));
    else if (parameter.optional) values.push(undefined);
    else return undefined;
  }
  return values;
}
