/** Schemas of the wire as tables for people, and text as `deno fmt` has it. */
import * as z from "zod/mini";

const ROOT = new URL("../", import.meta.url).pathname;

export type Json = Record<string, unknown>;

/** The JSON Schema of what crosses the wire. */
export function jsonSchema(schema: z.ZodMiniType): Json {
  const { $schema: _, ...rest } = z.toJSONSchema(schema as never, { io: "input" }) as Json;
  return rest;
}

/** Knows records by their shape, so that a field can name the record that it holds. */
export class Records {
  readonly #names = new Map<string, string>();

  constructor(records: Readonly<Record<string, z.ZodMiniType>>) {
    for (const [name, schema] of Object.entries(records)) {
      this.#names.set(JSON.stringify(jsonSchema(schema)), name);
    }
  }

  nameOf(schema: Json): string | undefined {
    return this.#names.get(JSON.stringify(schema));
  }

  /** A value in a few words. */
  words(schema: Json): string {
    const name = this.nameOf(schema);
    if (name !== undefined) return `[${name}](#${name.replaceAll(" ", "-")})`;
    if (schema.const !== undefined) return `\`${JSON.stringify(schema.const)}\``;
    if (Array.isArray(schema.enum)) return schema.enum.map((value) => `\`${value}\``).join(", ");
    const either = (schema.anyOf ?? schema.oneOf) as Json[] | undefined;
    if (either !== undefined) return either.map((one) => this.words(one)).join(" or ");
    if (Array.isArray(schema.type)) {
      return schema.type.map((type) => this.words({ ...schema, type })).join(" or ");
    }
    return this.#typed(schema);
  }

  #typed(schema: Json): string {
    switch (schema.type) {
      case "array": {
        const max = schema.maxItems === undefined ? "" : `, at most ${schema.maxItems}`;
        return `list of ${this.words(schema.items as Json)}${max}`;
      }
      case "object": {
        const inner = fields(schema);
        if (inner.length === 0) {
          const values = schema.additionalProperties as Json | undefined;
          return values !== undefined && Object.keys(values).length > 0
            ? `object of ${this.words(values)}`
            : "object";
        }
        const list = inner.map((one) => {
          const optional = one.required ? "" : "optional ";
          return `\`${one.name}\`: ${optional}${this.words(one.schema)}`;
        });
        return `object of ${list.join("; ")}`;
      }
      case "string":
        return schema.maxLength === undefined ? "text" : `text up to ${schema.maxLength}`;
      case "integer":
      case "number": {
        const { minimum, maximum } = schema as { minimum?: number; maximum?: number };
        const bounded = maximum !== undefined && maximum < Number.MAX_SAFE_INTEGER;
        return bounded ? `number from ${minimum} to ${maximum}` : "number";
      }
      default:
        return String(schema.type ?? "value");
    }
  }

  /** One row a field; `notes` say what the type does not. */
  table(schema: Json, notes: Readonly<Record<string, string>> = {}): string {
    const list = fields(schema);
    for (const name of Object.keys(notes)) {
      if (!list.some((field) => field.name === name)) throw new Error(`no field ${name} to note`);
    }
    const rows = list.map(({ name, required, schema }) => {
      const text = this.words(schema).replaceAll("|", "\\|");
      const note = notes[name] === undefined ? "" : `; ${notes[name]}`;
      return `| \`${name}\` | ${required ? "yes" : ""} | ${text}${note} |`;
    });
    return ["| field | required | content |", "| --- | --- | --- |", ...rows].join("\n");
  }
}

interface Field {
  readonly name: string;
  readonly required: boolean;
  readonly schema: Json;
}

export function fields(schema: Json): Field[] {
  const required = (schema.required ?? []) as string[];
  return Object.entries((schema.properties ?? {}) as Record<string, Json>).map(
    ([name, value]) => ({ name, required: required.includes(name), schema: value }),
  );
}

export async function format(text: string): Promise<string> {
  const child = new Deno.Command(Deno.execPath(), {
    args: ["fmt", "--quiet", "--config", `${ROOT}deno.json`, "--ext", "md", "-"],
    stdin: "piped",
    stdout: "piped",
  }).spawn();
  const writer = child.stdin.getWriter();
  await writer.write(new TextEncoder().encode(text));
  await writer.close();
  const { code, stdout } = await child.output();
  if (code !== 0) throw new Error(`deno fmt ended with ${code}`);
  return new TextDecoder().decode(stdout);
}
