/**
 * Finds window titles and status reports (OSC 0, 2 and 7501) in output that is not parsed: during
 * a flood the agent's own word on its state is the only sign left.
 */
const ESC = 0x1b, BEL = 0x07, CAN = 0x18, SUB = 0x1a;
const MAX_PAYLOAD = 512;

export class ReportScanner {
  #at: "ground" | "escape" | "osc" | "osc-escape" = "ground";
  #payload: number[] = [];
  readonly #decoder = new TextDecoder();

  /** @param onReport number and text of each sequence. */
  constructor(readonly onReport: (code: number, text: string) => void) {}

  feed(bytes: Uint8Array): void {
    for (let i = 0; i < bytes.length; i++) {
      if (this.#at === "ground") {
        i = bytes.indexOf(ESC, i);
        if (i < 0) return;
        this.#at = "escape";
      } else this.#step(bytes[i]!);
    }
  }

  reset(): void {
    this.#at = "ground";
    this.#payload = [];
  }

  #step(byte: number): void {
    if (this.#at === "escape") {
      this.#escaped(byte);
    } else if (this.#at === "osc-escape") {
      if (byte === 0x5c) this.#end();
      this.#escaped(byte);
    } else if (byte === BEL) {
      this.#end();
      this.#at = "ground";
    } else if (byte === ESC) this.#at = "osc-escape";
    else if (byte === CAN || byte === SUB) this.#at = "ground";
    else if (this.#payload.length < MAX_PAYLOAD) this.#payload.push(byte);
  }

  #escaped(byte: number): void {
    this.#at = byte === 0x5d ? "osc" : byte === ESC ? "escape" : "ground";
    // No new list for each of the thousands of sequences that are none.
    if (this.#payload.length > 0) this.#payload = [];
  }

  #end(): void {
    const text = this.#decoder.decode(new Uint8Array(this.#payload));
    const found = /^(\d{1,5});/.exec(text);
    if (found) this.onReport(Number(found[1]), text.slice(found[0].length));
  }
}
