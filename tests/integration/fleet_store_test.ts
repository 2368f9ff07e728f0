import { systemClock } from "../../lib/base/clock.ts";
import { SqliteFleetStore } from "../../lib/fleet/store/sqlite.ts";
import { conformance } from "../helpers/fleet_conformance.ts";

conformance(
  "SQLite",
  (dir) =>
    SqliteFleetStore.open({
      path: `${dir}/fleet.sqlite3`,
      clock: systemClock,
      busyTimeoutMs: 5000,
    }),
);
