/** `tamq db-version`. */
import { loadSettings } from "../../config.ts";
import { schemaVersion } from "../../sqlite/migrator.ts";
import { openDatabase } from "../../sqlite/open.ts";
import { SCHEMA_VERSION } from "../../store/store.ts";
import type { Verb } from "../command.ts";
import type { JsonFlag } from "./service.ts";

const dbVersion: Verb<JsonFlag> = async function ({ json }) {
  const { database, busyTimeoutMs } = await loadSettings(this.env);
  const db = openDatabase(database, { readOnly: true, busyTimeoutMs });
  try {
    const schema = schemaVersion(db);
    if (json) this.out(JSON.stringify({ database, schema, known: SCHEMA_VERSION }));
    else this.out(`schema ${schema} (this tamq knows up to ${SCHEMA_VERSION})`);
  } finally {
    db.close();
  }
};
export default dbVersion;
