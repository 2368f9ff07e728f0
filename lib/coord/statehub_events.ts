/** Server-sent events, read with bounds. */
import { TamqError } from "../base/errors.ts";

export interface ServerEvent {
  readonly id: string | undefined;
  readonly event: string;
  readonly data: string;
}

/** Larger than any change; an event beyond it is not one of ours. */
export const MAX_EVENT_CHARS = 4 << 20;

/** Cuts text into events, whatever the sizes in which it arrives. Throws `answer_too_large`. */
export class EventParser {
  readonly #limit: number;
  #rest = "";
  #data: string[] = [];
  #event = "";
  #id: string | undefined;
  #size = 0;

  constructor(limit = MAX_EVENT_CHARS) {
    this.#limit = limit;
  }

  push(text: string): ServerEvent[] {
    const events: ServerEvent[] = [];
    // A carriage return at the end may be the first half of a line end: it waits for the rest.
    let buffer = this.#rest + text;
    const held = buffer.endsWith("\r") ? "\r" : "";
    if (held !== "") buffer = buffer.slice(0, -1);
    const lines = buffer.split(/\r\n|\n|\r/);
    this.#rest = lines.pop()! + held;
    for (const line of lines) {
      const event = this.#line(line);
      if (event !== undefined) events.push(event);
    }
    if (this.#rest.length + this.#size > this.#limit) throw tooLarge(this.#limit);
    return events;
  }

  #line(line: string): ServerEvent | undefined {
    if (line === "") return this.#dispatch();
    const colon = line.indexOf(":");
    const field = colon < 0 ? line : line.slice(0, colon);
    const value = colon < 0 ? "" : line.slice(colon + 1).replace(/^ /, "");
    if (field === "data") {
      this.#data.push(value);
      this.#size += value.length + 1;
      if (this.#size > this.#limit) throw tooLarge(this.#limit);
    } else if (field === "event") this.#event = value;
    else if (field === "id" && !value.includes("\0")) this.#id = value;
    return undefined;
  }

  #dispatch(): ServerEvent | undefined {
    const event = this.#data.length === 0
      ? undefined
      : { id: this.#id, event: this.#event || "message", data: this.#data.join("\n") };
    this.#data = [];
    this.#event = "";
    this.#size = 0;
    return event;
  }
}

function tooLarge(limit: number): TamqError {
  return new TamqError(
    "RESOURCE_EXHAUSTED",
    "answer_too_large",
    `the State Hub sent an event of more than ${limit} characters`,
    { hint: "check what answers at the State Hub's address" },
  );
}
