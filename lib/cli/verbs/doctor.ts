/** `tamq doctor`: looks at the whole set-up and says how to mend what is wrong with it. */
import { loadSettings, type Settings } from "../../config.ts";
import { engineSettings } from "../../coord/settings.ts";
import { hubSettings } from "../../hub/settings.ts";
import { DEFAULT_PROFILE } from "../../model/policy.ts";
import type { ColorFlag } from "../colour.ts";
import type { Verb } from "../command.ts";
import type { CliContext } from "../context.ts";
import { failed, type Finding, guarded, ok, problem } from "../doctor/finding.ts";
import { checkEngine, checkHub } from "../doctor/coordination.ts";
import { checkService } from "../doctor/service.ts";
import {
  checkDatabase,
  checkOrwell,
  checkSocket,
  checkSpool,
  checkStateDir,
} from "../doctor/state.ts";
import { checkCompletion, checkGita, checkTmux } from "../doctor/tools.ts";
import { EXIT } from "../exit_codes.ts";
import { lookOf, table, wrap } from "../layout.ts";
import { displaySafe } from "../../base/display.ts";
import type { JsonFlag } from "./service.ts";

const WORDS = { ok: "ok", hint: "hint", warning: "warning", problem: "PROBLEM" } as const;
const STYLES = { ok: "green", hint: undefined, warning: "yellow", problem: "red" } as const;

const doctor: Verb<JsonFlag & ColorFlag> = async function ({ json, color }) {
  const findings = await examine(this);
  const sound = findings.every((finding) => finding.level !== "problem");
  if (json) this.out(JSON.stringify({ ok: sound, findings }));
  else {
    const look = lookOf(this, { color });
    const word = (level: Finding["level"]) => ({ text: WORDS[level], style: STYLES[level] });
    this.out(
      table(findings.map(({ check, level, detail }) => [word(level), check, detail]), look),
    );
    const mend = findings.filter((finding) => finding.remedy !== null);
    if (mend.length > 0) this.out("");
    for (const { check, level, remedy } of mend) {
      const text = displaySafe(`${WORDS[level]} ${check}: ${remedy}`);
      this.out(wrap(text, look.width).join("\n  "));
    }
  }
  return sound ? EXIT.ok : EXIT.failure;
};
export default doctor;

async function examine(context: CliContext): Promise<Finding[]> {
  const { env, clock } = context;
  const found: Finding[] = [];
  let settings: Settings | undefined;
  try {
    settings = await loadSettings(env);
    found.push(configuration(settings));
  } catch (error) {
    found.push(failed("configuration", error));
  }
  found.push(...await guarded("tmux", checkTmux));
  found.push(...await guarded("registry", () => checkGita(env)));
  if (settings !== undefined) {
    const { socket, spoolDir } = settings;
    found.push(...await guarded("state directory", () => checkStateDir(settings)));
    found.push(...await guarded("socket", () => checkSocket(socket)));
    const service = await checkService(settings);
    found.push(...service.findings);
    found.push(...await guarded("database", () => checkDatabase(settings, clock)));
    found.push(...await guarded("spool", () => checkSpool(spoolDir, service.windows)));
    const known = settings;
    found.push(...await guarded("engine", () => checkEngine(known)));
    found.push(...await guarded("state hub", () => checkHub(known, env)));
    const dirs = [settings.stateDir, engineSettings(settings), hubSettings(settings, env)]
      .map((place) => typeof place === "string" ? place : place.stateDir);
    found.push(...await guarded("orwell", () => checkOrwell(dirs)));
  }
  found.push(...await guarded("completion", () => checkCompletion(env)));
  return found;
}

function configuration(settings: Settings): Finding {
  const { configFile, configured, policyProfile, profiles } = settings;
  if (policyProfile !== DEFAULT_PROFILE.name && !Object.hasOwn(profiles, policyProfile)) {
    const names = [DEFAULT_PROFILE.name, ...Object.keys(profiles)].join(", ");
    return problem(
      "configuration",
      `there is no policy profile "${policyProfile}"`,
      `choose one of ${names}, or define it in ${configFile}`,
    );
  }
  const profile = `policy profile ${policyProfile}`;
  return ok("configuration", configured ? `${configFile}, ${profile}` : `defaults, ${profile}`);
}
