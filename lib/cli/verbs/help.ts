/** `tamq help [TOPIC]`. */
import { nearest } from "../../model/nearest.ts";
import type { Verb } from "../command.ts";
import { usageError } from "../errors.ts";
import { EXIT_MEANINGS } from "../exit_codes.ts";
import { HELP_TOPICS } from "../help_topics.ts";
import { late } from "../late.ts";
import { overview } from "../overview.ts";
import { COMMANDS, FAMILIES } from "../program.ts";
import { lookOf, table } from "../layout.ts";
import { runCli } from "../run.ts";

const help: Verb<unknown, [string?]> = async function (_flags, topic) {
  if (topic === undefined) return this.out(overview());
  if (topic === "config") return this.out(await (await late("cli/config_text")).configHelp());
  if (topic in COMMANDS || topic in FAMILIES) return await runCli([topic, "--help"], this);
  if (topic === "exit-codes") {
    this.out("Every command of tamq ends with one of these exit statuses:\n");
    return this.out(
      table(EXIT_MEANINGS.map(([status, text]) => [`  ${status}`, text]), lookOf(this)),
    );
  }
  if (topic === "protocol") {
    const { protocolHelp } = await late("cli/protocol_text");
    return this.out(protocolHelp(lookOf(this)));
  }
  const like =
    nearest(topic, [...Object.keys(COMMANDS), ...Object.keys(FAMILIES), ...HELP_TOPICS], 1)[0];
  const hint = like === undefined ? "see: tamq --help" : `did you mean "${like}"?`;
  throw usageError(`there is no command or topic "${topic}"`, hint);
};
export default help;
