/** `tamq help protocol`: the socket protocol in short, from the operation table (T-22, V-04). */
import { CAPABILITIES, PROTOCOL } from "../protocol/handshake.ts";
import { operations } from "../protocol/operations.ts";
import { FAILURE_CODES, RETRY_RULES } from "../base/errors.ts";
import { EXIT_OF } from "./exit_codes.ts";
import { type Look, table } from "./layout.ts";

export function protocolHelp(look: Look): string {
  const example = JSON.stringify({ op: "ping", protocol: PROTOCOL });
  const rows = Object.entries(operations).map(([name, { summary }]) => [`  ${name}`, summary]);
  const codes = FAILURE_CODES.map((code) => [
    `  ${code}`,
    RETRY_RULES[code],
    `exit status ${EXIT_OF[code]}`,
  ]);
  return `The message service listens on a Unix-domain stream socket of mode 0600. The kernel says who is at the
other end; another user is refused before a byte is read. A client connects, writes one line of JSON,
reads one line of JSON, and is done; attach and watch keep their connections.

  ${example}

is answered by {"ok":true,"result":{...}} or {"ok":false,"error":{code, reason, message, hint, retry}}.

VERSION
  ${PROTOCOL}, apart from that of the program. Another major version is refused; from a newer minor one
  unknown fields are ignored, from ours they are errors. Capabilities: ${CAPABILITIES.join(", ")}.

OPERATIONS
${table(rows, look)}

FAILURES, and what may be done about each
${table(codes, look)}

Fields, records and limits of each operation: docs/protocol.md.`;
}
