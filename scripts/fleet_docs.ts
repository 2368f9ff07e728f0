/** The generated part of docs/fleet.md: the failure table, from the table that the program uses. */
import { FAILURE_CODES } from "../lib/base/errors.ts";
import { FAILURES } from "../lib/fleet/failure.ts";
import { RetryRule } from "../lib/fleet/gen/common_pb.ts";

const PAGE = new URL("../docs/fleet.md", import.meta.url);
const BEGIN = "<!-- failures: made by deno task docs -->";
const END = "<!-- end of failures -->";

const REPEAT = {
  never: "never",
  refreshed: "after a refresh",
  released: "after the release",
  reconciled: "after reconciling",
} as const;

/** The page with its table made anew. */
export async function fleetPage(): Promise<string> {
  const page = await Deno.readTextFile(PAGE);
  const [before, rest] = page.split(BEGIN);
  const after = rest?.split(END)[1];
  if (before === undefined || after === undefined) {
    throw new Error(`docs/fleet.md lacks its marks ${BEGIN} and ${END}`);
  }
  const rows = FAILURE_CODES.map((code) => {
    const { status, statusName, rule, repeat, words } = FAILURES[code];
    return `| \`${code}\` | ${statusName} (${status}) | \`${RetryRule[rule]}\` | ${words} | ${
      REPEAT[repeat]
    } |`;
  });
  const table = [
    "| code | gRPC status | retry rule | what that means | same request again |",
    "| --- | --- | --- | --- | --- |",
    ...rows,
  ].join("\n");
  return `${before}${BEGIN}\n\n${table}\n\n${END}${after}`;
}
