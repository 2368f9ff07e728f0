/** What an attempt's outcome and reason mean, in words. */
import type { WireAttempt } from "../protocol/schema.ts";

const REASONS: Readonly<Record<string, string>> = {
  // Why nothing was written.
  starting: "the program was still starting",
  worker_exited: "the program has ended",
  hold: "the window holds messages back",
  operator_typing: "the operator was typing",
  line_not_empty: "the program's line holds text that somebody has to submit or delete",
  full_screen_program: "a full-screen program has the terminal",
  other_program: "another program than the agent reads the terminal",
  foreground_unknown: "what reads the terminal cannot be looked into (ssh, sudo, a container)",
  foreground_changed: "another program came to the terminal meanwhile",
  dialog_open: "the agent asks something; Enter would have answered it",
  agent_busy: "the agent works, and a message would interrupt it",
  paste_mode_off: "the agent does not take pastes now, and typing would be read key by key",
  no_report: "the agent does not report its state",
  report_not_idle: "the agent reported no rest",
  no_prompt_row: "the agent's line was not found on the screen",
  no_ready_title: "the window's title does not say that the agent is ready",
  no_ready_row: "no row of the screen says that the agent is ready",
  screen_unsettled: "the screen did not come to rest",
  ready_timeout: "the window took nothing for too long",
  line_too_long: "the program reads lines, and this one does not fit",
  special_character: "a character of the text has another meaning in this terminal (stty)",
  body_binary: "the text holds control characters",
  output_unsettled: "the program was in the middle of a sequence",
  broker_degraded: "the window's broker has met an error and only passes bytes on",
  broker_lost: "the window's broker is gone",
  broker_silent: "the window's broker did not say what became of the last attempt",
  broker_error: "the window's broker met an error of its own",
  not_attached: "the repository has no window now",
  busy: "another message was being written",
  // Written, not submitted.
  not_shown: "the text did not appear in the agent's line; Enter was not pressed",
  dialog_opened: "a dialog opened behind the text; Enter was not pressed",
  operator_interrupt: "the operator pressed ^C; Enter was not pressed",
  operator_typed_behind: "the operator typed behind the text; Enter was not pressed",
  not_submitted: "the text still stands in the agent's line after Enter",
  terminal_not_read: "the program did not read its terminal",
  terminal_gone: "the terminal is gone",
  // Written.
  flattened: "line breaks became ⏎, since each would have submitted",
  draft: "the text stands in the line; the operator submits it",
  "unconfirmed: dialog": "Enter was pressed, and a dialog opened that hides the line",
  "unconfirmed: emptied": "Enter was pressed and the line is empty; nothing else shows it",
  unconfirmed: "Enter was pressed, and nothing shows what became of it",
};

const SEEN: Readonly<Record<string, string>> = {
  echo: "submitted: the agent shows it as its user's text",
  working: "submitted: the agent began to work",
  queued: "taken: it waits until the agent is free",
};

/** A reason in words; the reason itself where there are none. */
export function reasonWords(reason: string): string {
  const missing = /^agent_unrecognised: (.*)$/.exec(reason)?.[1];
  if (missing !== undefined) {
    return `the profile does not recognise this agent: ${REASONS[missing] ?? missing}`;
  }
  const seen = /^confirmed: (\w+)(?:, (.*))?$/.exec(reason);
  if (seen !== null) {
    const how = seen[2] === "second key" ? ", at the second Enter" : seen[2] ? `, ${seen[2]}` : "";
    return (SEEN[seen[1]!] ?? reason) + how;
  }
  const gate = /^gate: (.*)$/.exec(reason)?.[1];
  if (gate !== undefined) return reasonWords(gate);
  return REASONS[reason] ?? reason;
}

/** One attempt in words; undefined where its columns say all. */
export function attemptWords({ outcome, reason }: WireAttempt): string | undefined {
  if (outcome === "displayed") return "shown in the window; nothing was typed at the shell";
  if (outcome === "stalled") return "written in part or not read: what became of it is not known";
  if (reason !== null) {
    const words = reasonWords(reason);
    return words === reason ? undefined : words;
  }
  return outcome === "written"
    ? "written; a program's own line shows no more than that"
    : undefined;
}
