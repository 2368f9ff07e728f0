/** `tamq export`: reads the database itself, so that it works with the service stopped. */
import { loadSettings } from "../../config.ts";
import type { Verb } from "../command.ts";
import { openExportFile } from "../export_file.ts";
import { late } from "../late.ts";
import { countedMessages, progress } from "../progress.ts";
import { parseTime } from "../times.ts";
import type { HistoryFlags } from "./history.ts";
import { openHistory } from "./open_history.ts";

export type ExportFlags = Omit<HistoryFlags, "limit" | "reverse" | "json">;

const exportVerb: Verb<ExportFlags, [string?]> = async function (flags, file = "-") {
  const now = this.clock.now();
  const time = (option: "since" | "until") =>
    flags[option] === undefined ? undefined : parseTime(flags[option], now, `--${option}`);
  const filters = {
    repo: flags.repo,
    state: flags.state,
    endpoint_id: flags.endpoint,
    correlation_id: flags.correlation,
    since: time("since"),
    until: time("until"),
  };
  const db = await openHistory(this, await loadSettings(this.env));
  if (db === undefined) return;
  const { exportLines } = await late("store/export");
  const shown = progress(this, file === "-" && this.stdoutIsTerminal());
  try {
    using output = file === "-" ? undefined : openExportFile(file);
    let count = 0;
    for (const lines of exportLines(db, filters)) {
      if (output === undefined) {
        for (const line of lines) this.out(line);
        await this.flush();
      } else output.write(lines);
      count += lines.length;
      shown.show(() => `${countedMessages(count)}`);
    }
    output?.finish();
    shown.end();
    if (output !== undefined) this.err(`exported ${countedMessages(count)} to ${file}`);
  } finally {
    shown.end();
    db.close();
  }
};
export default exportVerb;
