/** Stands in for `node:sqlite` in the bundle; see ../bundle.ts. */
const sqlite = process.getBuiltinModule("node:sqlite");
export const { DatabaseSync, backup } = sqlite;
