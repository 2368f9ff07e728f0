export { Steady } from "../base/steady.ts";
