/**
 * Imported before Ink: where the environment says CI, Ink paints nothing until it ends, and a fake
 * that stands for an agent in someone's terminal would never be ready.
 */
import process from "node:process";

delete process.env.CI;
delete process.env.CONTINUOUS_INTEGRATION;
