/** A world with State Hub, message service and coordination engine, and workers in real windows. */
import { World } from "./world.ts";

export interface Step {
  readonly line?: string;
  /** When it was read, epoch microseconds. */
  readonly read?: number;
  readonly args?: readonly string[];
  readonly code?: number;
  readonly stdout?: string;
  readonly stderr?: string;
}

const WORKER = new URL("../agents/coord_worker.ts", import.meta.url).pathname;

export class CoordWorld implements AsyncDisposable {
  private constructor(readonly world: World) {}

  /** `config`: the `[coordination]` table and whatever else the configuration file is to say. */
  static async create(repos: readonly string[], config = ""): Promise<CoordWorld> {
    const world = await World.create(repos);
    await Deno.mkdir(`${world.dir}/config/tamq`, { recursive: true, mode: 0o700 });
    await Deno.writeTextFile(`${world.dir}/config/tamq/config.toml`, config);
    return new CoordWorld(world);
  }

  hub(...args: string[]): Promise<string> {
    return this.world.mustTamq(["hub", ...args]);
  }

  coord(...args: string[]): Promise<string> {
    return this.world.mustTamq(["coord", ...args]);
  }

  async start(): Promise<void> {
    await this.hub("serve", "--detach");
    await this.world.mustTamq(["serve", "--detach"]);
    await this.coord("serve", "--detach", "--verbose");
  }

  task(id: string, repo: string, ...more: string[]): Promise<string> {
    return this.hub("task", "add", `Do ${id}`, "--repo", repo, "--id", id, "--ready", ...more);
  }

  log(repo: string): string {
    return `${this.world.dir}/${repo}.steps`;
  }

  /** Opens a window with a scripted worker. */
  async worker(repo: string, mode = "work"): Promise<void> {
    const tamq = JSON.stringify(this.world.argv([]));
    const words = [Deno.execPath(), "run", "-A", "--quiet", "--no-lock", WORKER];
    const command = [...words, this.log(repo), tamq, mode].map((word) => `'${word}'`).join(" ");
    await this.world.open(command, repo);
  }

  async steps(repo: string): Promise<Step[]> {
    try {
      const text = await Deno.readTextFile(this.log(repo));
      return text.split("\n").filter((line) => line !== "").map((line) => JSON.parse(line));
    } catch {
      return [];
    }
  }

  /** The wakes that arrived in the window of `repo`. */
  async wakes(repo: string): Promise<string[]> {
    return (await this.steps(repo)).flatMap(({ line }) =>
      line?.startsWith("From:coordination-engine") ? [line] : []
    );
  }

  async rows(...args: string[]): Promise<Record<string, unknown>[]> {
    const text = await this.world.mustTamq([...args, "--json"]);
    return text.split("\n").filter((line) => line !== "").map((line) => JSON.parse(line));
  }

  async until<T>(what: string, probe: () => Promise<T | false | undefined>): Promise<T> {
    try {
      return await this.world.until(what, probe);
    } catch (error) {
      const facts = {
        triggers: await this.rows("coord", "triggers").catch(String),
        leases: await this.rows("coord", "leases", "--all").catch(String),
        log: await Deno.readTextFile(`${this.world.dir}/state/tamq/coord/coord.log`).catch(String),
      };
      throw new Error(`${(error as Error).message}\n${JSON.stringify(facts, null, 1)}`);
    }
  }

  untilDone(task: string): Promise<unknown> {
    return this.until(`${task} to be done`, async () => {
      const [row] = await this.rows("hub", "task", "show", task);
      return row!.status === "done";
    });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.world.tamq(["coord", "stop"]).catch(() => {});
    await this.world.tamq(["hub", "stop"]).catch(() => {});
    await this.world[Symbol.asyncDispose]();
  }
}
