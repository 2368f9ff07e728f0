import type { Migration } from "../../sqlite/migrator.ts";
import { initial } from "./0001_initial.ts";

/** Every migration of the message service's database, in order. */
export const MIGRATIONS: readonly Migration[] = [initial];
