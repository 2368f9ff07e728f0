/** Writes the pages under docs/ and man/ that are made from code (deno task docs). Tests keep them fresh. */
import { configurationPage } from "./config_docs.ts";
import { fleetPage } from "./fleet_docs.ts";
import { jsonPage, protocolPage } from "./protocol_docs.ts";
import { write as writeManPages } from "./man_pages.ts";
import { format } from "./schema_text.ts";
import { statesPage } from "./states_docs.ts";
import { render as stateHub } from "./statehub_docs.ts";

const ROOT = new URL("../", import.meta.url).pathname;

/** The pages about messages, by path. */
export async function render(): Promise<Record<string, string>> {
  const [protocol, json, states, configuration, fleet] = await Promise.all([
    format(protocolPage()),
    format(jsonPage()),
    format(statesPage()),
    configurationPage(),
    fleetPage().then(format),
  ]);
  return {
    "docs/protocol.md": protocol,
    "docs/json.md": json,
    "docs/states.md": states,
    "docs/configuration.md": configuration,
    "docs/fleet.md": fleet,
  };
}

if (import.meta.main) {
  for (const [path, text] of Object.entries({ ...await render(), ...await stateHub() })) {
    await Deno.writeTextFile(ROOT + path, text);
  }
  await writeManPages();
}
