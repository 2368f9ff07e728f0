/** The package's version (V-03). */
import manifest from "../../deno.json" with { type: "json" };

export const VERSION: string = manifest.version;
