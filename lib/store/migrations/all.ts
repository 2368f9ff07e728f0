import type { Migration } from "../../sqlite/migrator.ts";
import { initial } from "./0001_initial.ts";
import { history } from "./0002_history.ts";
import { controls } from "./0003_controls.ts";
import { listings } from "./0004_listings.ts";

/** Every migration of the message service's database, in order. */
export const MIGRATIONS: readonly Migration[] = [initial, history, controls, listings];
