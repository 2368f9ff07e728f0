/** `tamq top` in a real tmux: sizes, resizing, keys, a restart of the service, every way out. */
import assert from "node:assert/strict";
import { World } from "../helpers/world.ts";

class Pane {
  private constructor(readonly world: World, readonly id: string) {}

  static async open(world: World): Promise<Pane> {
    await world.tmux("new-session", "-d", "-s", "look", "-x", "80", "-y", "24", "/bin/sh");
    const id = await world.tmux("list-panes", "-t", "look:", "-F", "#{pane_id}");
    return new Pane(world, id.trim());
  }
  async type(text: string): Promise<void> {
    await this.world.tmux("send-keys", "-t", this.id, "-l", "--", text);
    await this.world.tmux("send-keys", "-t", this.id, "Enter");
  }
  async key(...keys: string[]): Promise<void> {
    await this.world.tmux("send-keys", "-t", this.id, ...keys);
  }
  async rows(): Promise<string[]> {
    return (await this.world.tmux("capture-pane", "-p", "-t", this.id)).split("\n").slice(0, -1);
  }
  async shows(...texts: (string | RegExp)[]): Promise<string[]> {
    return await this.world.until(`${texts.join(", ")} on the screen`, async () => {
      const rows = await this.rows();
      const text = rows.join("\n");
      const all = texts.every((one) =>
        typeof one === "string" ? text.includes(one) : one.test(text)
      );
      return all && rows;
    });
  }
  async resize(columns: number, rows: number): Promise<void> {
    await this.world.tmux("resize-window", "-t", "look:", "-x", `${columns}`, "-y", `${rows}`);
  }
  async flags(): Promise<string> {
    const format = "#{alternate_on} #{cursor_flag} #{wrap_flag}";
    return (await this.world.tmux("display", "-p", "-t", this.id, format)).trim();
  }
  /** The shell is back, on its own screen, with a cursor, wrapping, and a terminal that echoes. */
  async isSane(): Promise<void> {
    // What is typed before the program has ended is read by it.
    await this.world.until("the shell to be back", async () => {
      const format = "#{pane_current_command}";
      return (await this.world.tmux("display", "-p", "-t", this.id, format)).trim() === "sh";
    });
    await this.type(
      'echo "status $?"; stty -a | tr " ;" "\\n\\n" | grep -x -e "-\\?icanon" -e "-\\?echo"',
    );
    const rows = await this.shows(/^icanon$/m, /^echo$/m);
    assert.ok(!rows.some((row) => row.includes("q quit")), "the view is gone");
    assert.equal(await this.flags(), "0 1 1");
  }
}

Deno.test("[C-01] top in tmux at 80x24, 40x10 and 200x50, live over a restart, left by q, Ctrl-C, SIGTERM and a crash", async () => {
  await using world = await World.create(["alpha", "beta"]);
  const pane = await Pane.open(world);
  const command = world.argv(["top"]).join(" ");
  await pane.type(command);
  await pane.shows("no service listens", "hint: start it with: tamq serve --detach");
  await world.mustTamq(["serve", "--detach"]);
  await world.open("cat", "alpha", "beta");
  await pane.type("clear");
  await pane.type(command);
  await pane.shows("tamq top  service", "alpha   ready", "none yet; send one");
  // Pushed, not polled: a message shows by itself.
  await world.mustTamq(["send", "--to", "alpha", "--", "CANARY-TEXT"]);
  const small = await pane.shows("1 injected", "local/o → alpha  injected");
  assert.ok(!small.join("\n").includes("CANARY-TEXT"));
  assert.match(small.at(-1)!, /^ q quit {2}\? help/);

  await pane.resize(40, 10);
  const tiny = await pane.shows(/^ q quit {2}\? help {2}1 all {2}2 windows/m, "alpha", "injected");
  assert.equal(tiny.length, 10);
  await pane.resize(200, 50);
  const wide = await world.until("the last row of 50", async () => {
    const rows = await pane.rows();
    return rows.length === 50 && rows[49]!.includes("5 messages") && rows;
  });
  assert.ok(wide.join("\n").includes("0 blocked pairs"));
  await pane.resize(80, 24);
  await pane.key("?");
  await pane.shows("quit (also Ctrl-C)");
  await pane.key("5", "t");
  await pane.shows("│ CANARY-TEXT");

  await world.mustTamq(["stop"]);
  await pane.shows("the service has ended; waiting for it");
  await world.mustTamq(["serve", "--detach"]);
  await pane.shows("tamq top  service", "up ");
  await pane.key("q");
  await pane.isSane();
  await pane.shows("status 0");

  await pane.type("clear");
  await pane.type(command);
  await pane.shows("tamq top  service", "q quit");
  await pane.key("C-c");
  await pane.isSane();

  await pane.type("clear");
  await pane.type(`${command} & echo $! > ${world.dir}/pid; fg`);
  await pane.shows("tamq top  service", "q quit");
  Deno.kill(Number(await Deno.readTextFile(`${world.dir}/pid`)), "SIGTERM");
  await pane.isSane();

  // What nobody foresaw: an error in the middle of the view.
  const crash = `${world.dir}/crash.ts`;
  const module = new URL("../../lib/cli/top/terminal.ts", import.meta.url).href;
  await Deno.writeTextFile(
    crash,
    `import { FullScreen } from ${JSON.stringify(module)};
     const screen = new FullScreen(true);
     screen.paint([[{ text: "IN THE VIEW q quit" }]], screen.size());
     Deno.stdin.read(new Uint8Array(1)).then(() => { throw new Error("nobody foresaw it"); });`,
  );
  const config = new URL("../../deno.json", import.meta.url).pathname;
  await pane.type("clear");
  await pane.type(`${Deno.execPath()} run -A --no-check --config ${config} ${crash}`);
  await pane.shows("IN THE VIEW");
  assert.equal(await pane.flags(), "1 0 0");
  await pane.key("x");
  await pane.shows("nobody foresaw it");
  await pane.isSane();
});
