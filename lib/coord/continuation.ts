/**
 * The prompt of a wake (K-10, K-11, K-12): what is to be done, the exact commands, where the last
 * worker stood, and the continuation templates. Suggestions only: they open no gate.
 */
import { TamqError } from "../base/errors.ts";
import { checkBody, MAX_BODY_BYTES } from "../model/body.ts";
import type { Checkpoint } from "../model/checkpoint.ts";
import type { PolicyProfile } from "../model/policy.ts";
import type { WorkerTrigger } from "../model/trigger.ts";

/** What is to be done, in the words of the State Hub. */
export interface Work {
  readonly title: string;
  readonly text: string;
  /** The command that shows all of it, and the one that says that it is done. */
  readonly show: string;
  readonly done: string | null;
}

export interface PromptParts {
  readonly trigger: WorkerTrigger;
  readonly work: Work;
  readonly checkpoint: Checkpoint | undefined;
  /** As `tamq coord` takes it. */
  readonly handle: string;
  readonly policy: PolicyProfile;
  readonly leaseSeconds: number;
  readonly hallOfHelix: string | undefined;
  /** The repository's own templates in place of ours. */
  readonly override: string | undefined;
}

/** The four templates, in their order; the last one needs its destination (K-12). */
export function templates(hallOfHelix: string | undefined): string[] {
  const all = [
    "Inspect open work and implement the highest-priority actionable item.",
    "If no work is open, reconcile SCOPE.md with INTENT.md, record gaps under history/, and " +
    "create or register a workplan for the most relevant gap.",
    "Review pending work, refine it where needed, and implement the next safe item.",
  ];
  if (hallOfHelix !== undefined) {
    all.push(
      "If no safe work remains, close the session and write a perspective entry to " +
        `${hallOfHelix}.`,
    );
  }
  return all;
}

/** Texts of others are cut to so many characters each, the first at which the whole fits. */
const TEXT_LIMITS = [1500, 600, 150] as const;
const MOST_FILES = 20;

/** At most 8 KiB, plain text. Throws `prompt_impossible` for what no message may carry. */
export function buildPrompt(parts: PromptParts): string {
  let reason = "";
  // The repository's own text goes last of all: the commands must fit whatever it holds.
  for (const override of new Set([parts.override, undefined])) {
    for (const most of TEXT_LIMITS) {
      const checked = checkBody(compose({ ...parts, override }, most));
      if (checked.ok) return checked.value;
      reason = checked.error.reason;
    }
  }
  throw new TamqError(
    "FAILED_PRECONDITION",
    "prompt_impossible",
    `no wake message can be made: ${reason}`,
    { hint: "shorten the task's text" },
  );
}

function compose(parts: PromptParts, most: number): string {
  const { trigger, work, checkpoint, handle, policy, leaseSeconds } = parts;
  const lines = [
    `Work for ${trigger.target_repo}: ${trigger.source} ${trigger.source_id} (${trigger.reason}).`,
    `Title: ${oneLine(work.title)}`,
    ...quote(work.text, most),
    `All of it: ${work.show}`,
    "",
    "Before you begin, take it on:",
    `  tamq coord ack ${handle}`,
    `Every ${Math.max(1, Math.floor(leaseSeconds / 2))} seconds while you work, unless you run ` +
    "as an agent that tamq sees working:",
    `  tamq coord renew ${handle}`,
    "Before you yield or stop, say where you stand (--file for each changed file; --blocked when",
    "only a person can go on: human, secret, destructive, policy; or dependency, unavailable):",
    `  tamq coord checkpoint ${handle} --summary TEXT --next TEXT`,
    `  tamq coord release ${handle}`,
    "When it is finished:",
    ...(work.done === null ? [] : [`  ${work.done}`]),
    `  tamq coord complete ${handle}`,
    "If one of these says that the lease is over, stop this work.",
    ...(checkpoint === undefined ? [] : resume(checkpoint, most)),
    "",
    `You may: ${policy.allow.join(", ")}.`,
    `Left to a person: ${policy.requireHuman.join(", ")}. Nothing here widens that.`,
    ...(parts.override === undefined ? standard(parts.hallOfHelix) : ["", parts.override]),
  ];
  return lines.join("\n");
}

function standard(hallOfHelix: string | undefined): string[] {
  return [
    "",
    "Then go on in this order, as far as your repository's instructions and the policy allow:",
    ...templates(hallOfHelix).map((text, index) => `${index + 1}. ${text}`),
  ];
}

function resume(checkpoint: Checkpoint, most: number): string[] {
  const files = checkpoint.files_changed.slice(0, MOST_FILES);
  const more = checkpoint.files_changed.length - files.length;
  return [
    "",
    `Go on from the checkpoint of ${checkpoint.recorded_at}:`,
    ...quote(checkpoint.summary, most),
    ...(files.length === 0 ? [] : [
      `Changed: ${files.map(oneLine).join(", ").slice(0, most)}` +
      (more > 0 ? ` and ${more} more` : ""),
    ]),
    ...(checkpoint.next_action === undefined
      ? []
      : ["Next:", ...quote(checkpoint.next_action, most)]),
  ];
}

/** Somebody else's text, marked as such on every line. */
function quote(text: string, most: number): string[] {
  if (text.trim() === "") return [];
  const cut = [...text].slice(0, most).join("");
  return [
    ...cut.split("\n").map((line) => `> ${line}`),
    ...(cut.length < text.length ? ["> … (cut)"] : []),
  ];
}

function oneLine(text: string): string {
  return text.replace(/\s+/g, " ").trim();
}

/** Where a repository keeps its own templates. */
export const OVERRIDE_FILE = ".tamq/continuation.md";
const MOST_OVERRIDE_BYTES = MAX_BODY_BYTES / 4;

/**
 * The repository's templates; undefined without a usable file. A link is not followed: the text goes
 * to an agent, and must be what the repository holds.
 */
export function readOverride(repository: string): string | undefined {
  const path = `${repository}/${OVERRIDE_FILE}`;
  try {
    const info = Deno.lstatSync(path);
    if (!info.isFile || info.size === 0 || info.size > MOST_OVERRIDE_BYTES) return undefined;
    const text = new TextDecoder("utf-8", { fatal: true }).decode(Deno.readFileSync(path)).trim();
    return checkBody(text).ok ? text : undefined;
  } catch {
    return undefined;
  }
}
