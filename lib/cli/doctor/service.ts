/** The running service, as it sees itself. */
import { TamqError } from "../../base/errors.ts";
import { briefClock } from "../../base/brief_clock.ts";
import { call, findSocket } from "../../client.ts";
import type { Settings } from "../../config.ts";
import { liveHolder, readHolder } from "../../socket.ts";
import { VERSION } from "../version.ts";
import { quoteWord } from "../words.ts";
import { failed, type Finding, ok, problem, warning } from "./finding.ts";

export interface ServiceFindings {
  readonly findings: Finding[];
  /** Attached windows; undefined when no service answers. */
  readonly windows: number | undefined;
}

export async function checkService(settings: Settings): Promise<ServiceFindings> {
  const socket = findSocket(settings);
  let status;
  try {
    status = await call(socket, "status", {}, { clock: briefClock });
  } catch (error) {
    const down = error instanceof TamqError && error.reason === "service_unavailable";
    if (!down) return { findings: [failed("service", error)], windows: undefined };
    const { stateDir } = settings;
    const holder = liveHolder(stateDir);
    if (holder !== undefined) {
      const detail = `process ${holder.pid} holds ${stateDir} and is not reached on ` +
        `${holder.socket}: it is starting, or its socket file is gone`;
      const remedy = "look again in a moment, then: tamq stop; tamq serve --detach";
      return { findings: [problem("service", detail, remedy)], windows: undefined };
    }
    // A service that stops in order empties its lock file.
    const crashed = readHolder(settings.stateDir) !== undefined;
    const detail = crashed ? "it ended without a shutdown" : "not running";
    const remedy = crashed
      ? `see the end of ${settings.logFile}; start it: tamq serve --detach`
      : "it starts with the first window, or by: tamq serve --detach";
    return { findings: [warning("service", detail, remedy)], windows: undefined };
  }
  const { service, controls, endpoints } = status;
  const restart = "tamq stop; tamq serve --detach";
  const found: Finding[] = [
    service.version === VERSION
      ? ok("service", `process ${service.pid}, version ${service.version}, ${service.socket}`)
      : warning("service", `it is version ${service.version}, this is ${VERSION}`, restart),
  ];
  if (status.sqlite.path !== settings.database) {
    found.push(
      problem(
        "service",
        `it serves ${status.sqlite.path}, not ${settings.database}`,
        "set the same TAMQ_STATE_DIR everywhere, then: " + restart,
      ),
    );
  }
  for (const name of ["sqlite", "gita", "queue", "leases"] as const) {
    if (!status[name].ok) found.push(problem(`service: ${name}`, status[name].detail, restart));
  }
  if (controls.paused_at !== null) {
    found.push(warning("deliveries", `paused since ${controls.paused_at}`, "tamq resume"));
  }
  for (const { sender_repo, target_repo, refused } of controls.blocked) {
    const words = [sender_repo, target_repo].map(quoteWord).join(" ");
    const detail = `${sender_repo} → ${target_repo} is blocked, ${refused} refused`;
    found.push(warning("deliveries", detail, `tamq unblock ${words}`));
  }
  for (const { sender_repo, target_repo, messages } of controls.held) {
    const words = [sender_repo, target_repo].map(quoteWord).join(" ");
    const detail = `${sender_repo} → ${target_repo}: ${messages} held`;
    found.push(warning("deliveries", detail, `tamq allow ${words}`));
  }
  const windows = endpoints.reduce((count, one) => count + one.attachments.length, 0);
  return { findings: found, windows };
}
