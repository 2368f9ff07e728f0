/**
 * Stands in for `zod/mini` in the bundle: with the one language that the program sets. The package
 * offers all as one object, which a bundler has to keep whole (300 KB).
 */
// deno-lint-ignore-file no-import-prefix -- entries of their own in the import map would be ones for the whole program
import en from "npm:zod@4.6.7/v4/locales/en.js";
export * from "npm:zod@4.6.7/mini";
export const locales = { en };
