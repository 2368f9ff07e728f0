/** docs/states.md from the state machine. */
import {
  ACK_MODES,
  EVENT_TYPES,
  type MessageEvent,
  type MessageStatus,
  STATES,
  transition,
} from "../lib/model/message.ts";

/** Every status that a message can have. */
const STATUSES: readonly (readonly [string, MessageStatus])[] = STATES.flatMap((state) => {
  const plain = [state, { state, leased: false }] as const;
  return state === "pending"
    ? [plain, ["pending, leased", { state, leased: true }] as const]
    : [plain];
});

/** Every event with everything that its outcome may depend on. */
function variants(type: MessageEvent["type"]): (readonly [string, MessageEvent])[] {
  const capped = (text: string, make: (capped: boolean) => MessageEvent) =>
    [
      [text, make(false)],
      [`${text}, last attempt`, make(true)],
    ] as const;
  switch (type) {
    case "written":
      // The cap does not matter to a success; a test of the state machine says so.
      return ACK_MODES.map((ackMode) =>
        [`written, mode ${ackMode}`, { type, ackMode, capped: false }] as const
      );
    case "write_failed":
    case "lease_expired":
    case "ack_timeout":
      return [...capped(type, (capped) => ({ type, capped }))];
    default:
      return [[type, { type }]];
  }
}

const EVENTS = EVENT_TYPES.flatMap(variants);

function statusName({ state, leased }: MessageStatus): string {
  return leased ? `${state}, leased` : state;
}

function cell(from: MessageStatus, event: MessageEvent): string {
  const outcome = transition(from, event);
  if (!outcome.ok) return `_${outcome.error.reason}_`;
  const { next, noop, failure, attempts } = outcome.value;
  const same = next.state === from.state && next.leased === from.leased;
  if (noop) return "nothing changes";
  const extra = [
    ...failure === undefined ? [] : [failure === "cause" ? "reason of the event" : failure],
    ...attempts === "increment" ? ["attempt + 1"] : attempts === "reset" ? ["attempts 0"] : [],
  ];
  const name = same ? "stays" : `**${statusName(next)}**`;
  return extra.length === 0 ? name : `${name} (${extra.join(", ")})`;
}

/** One arrow for each pair of states, with the events that take it. */
function drawing(): string {
  const arrows = new Map<string, string[]>();
  for (const [, from] of STATUSES) {
    for (const [name, event] of EVENTS) {
      const outcome = transition(from, event);
      if (!outcome.ok || outcome.value.noop) continue;
      const id = (status: MessageStatus) => status.leased ? "leased" : status.state;
      const [a, b] = [id(from), id(outcome.value.next)];
      if (a === b) continue;
      const key = `    ${a} --> ${b}`;
      arrows.set(key, [...arrows.get(key) ?? [], name]);
    }
  }
  const lines = [...arrows].map(([arrow, names]) => `${arrow}: ${names.join(" / ")}`);
  return [
    "```mermaid",
    "stateDiagram-v2",
    '    state "pending, leased" as leased',
    "    [*] --> pending: send",
    ...lines,
    "```",
  ].join("\n");
}

export function statesPage(): string {
  const head = ["event", ...STATUSES.map(([name]) => name)];
  const rows = EVENTS.map(([name, event]) => [
    `\`${name}\``,
    ...STATUSES.map(([, status]) => cell(status, event)),
  ]);
  const line = (cells: readonly string[]) => `| ${cells.join(" | ")} |`;
  return `# States of a message

<!-- Made by \`deno task docs\` from lib/model/message.ts; do not edit. -->

| state          | means                                                                             |
| -------------- | --------------------------------------------------------------------------------- |
| \`pending\`      | waits for delivery; \`waiting_reason\` says for what. With a lease: being delivered |
| \`awaiting_ack\` | written, and somebody is to run \`tamq ack ID\` (mode \`acknowledged\`)               |
| \`injected\`     | written into the terminal, or displayed in a shell's window                       |
| \`acknowledged\` | somebody said so                                                                  |
| \`failed\`       | given up; \`last_failure_reason\` says why. \`tamq retry ID\` starts it over          |

None of them says that any work was done.

## Every state, every event

Bold is the next state; in italics, why the event is refused and nothing changes. \`last attempt\`
means that the policy's \`max_attempts\` is reached.

${line(head)}
${line(head.map(() => "---"))}
${rows.map(line).join("\n")}

## Drawing

${drawing()}

## What moves them

- \`lease\`: a window's gate is open and the message is the oldest that may go there. A held, paused or
  unreleased message is offered to no window; holding is no state, it shows as \`waiting_reason\`.
- \`written\`, \`write_failed\`: what the window's broker reports of the attempt, under the lease's token.
  A report under another token changes nothing: \`lease_lost\`.
- \`lease_expired\`: nobody reported in time; a failed attempt.
- \`ack_timeout\`: no acknowledgement in time; the same message goes again.
- \`ack\`, \`retry\`, \`cancel\`: people and programs. A late acknowledgement wins.
- \`rebind\`: the message's tmux server is gone and another hosts its repository.

The delay after attempt 1, 2, 3, 4 … is 5, 15, 60, 300, 300 … seconds unless configured otherwise.
`;
}
