/**
 * The same keys in the same programs, with and without the broker, in one tmux server (B-01): what
 * tmux shows of the two panes, and every mode that the programs switched, is the same.
 */
import assert from "node:assert/strict";
import { World } from "../helpers/world.ts";

/** What one `tmux send-keys` gets: names of keys, a text or bytes; or a new size of the window. */
type Keys = readonly string[];
/** Keys, and what must show before the next: without it two panes that did nothing yet are equal. */
type Step = readonly [keys: readonly Keys[], shows: RegExp];

interface Program {
  readonly name: string;
  readonly argv: readonly string[];
  readonly steps: readonly Step[];
}

const type = (text: string): Keys => ["-l", "--", text];
const raw = (text: string): Keys => [
  "-H",
  ...[...new TextEncoder().encode(text)].map((byte) => byte.toString(16).padStart(2, "0")),
];
const resize = (columns: number, rows: number): Keys => ["resize", `${columns}`, `${rows}`];
/** The left button of the mouse, pressed and let go, as terminals report it (mode 1006). */
const click = (column: number, row: number): Keys =>
  raw(`\x1b[<0;${column};${row}M\x1b[<0;${column};${row}m`);
/** The same as terminals report it to programs that ask for nothing newer (mode 1000). */
const oldClick = (column: number, row: number): Keys => {
  const place = String.fromCharCode(32 + column, 32 + row);
  return raw(`\x1b[M ${place}\x1b[M#${place}`);
};

const MOUSE_MODES = [9, 1000, 1002, 1003, 1005, 1006, 1004, 2004, 1, 25, 7, 1049];
/** Switches the modes one by one, each at a click, and prints what it reads. */
const MOUSE_DRIVEN = `stty raw -echo
for mode in ${MOUSE_MODES.join(" ")}; do
  printf '\\033[?%s%s waits in mode %s' $mode \\
    "$(case $mode in 25|7) echo l;; *) echo h;; esac)" $mode
  printf ' got %s\\r\\n' "$(dd bs=1 count=18 2>/dev/null | od -An -c | tr -d ' \\n')"
done
printf 'all modes'`;

function programs(dir: string, sleeper: number): Program[] {
  const own = [`HOME=${dir}/home`, `HTOPRC=${dir}/htoprc`];
  return [
    {
      name: "bash",
      argv: ["env", "PS1=>> ", "HISTFILE=", "bash", "--norc", "--noprofile"],
      steps: [
        [[], /^>>/m],
        [[
          type(String.raw`printf '\033]2;a title \342\234\246\007\033[1;38;5;208mx\033[0m ' `),
          type("日本 e\u0301 👩‍💻; echo '日本 e\u0301 👩‍💻'"),
          ["Enter"],
        ], /^x ?日本/m],
        [
          [type("ech hello"), ["Home", "Right", "Right", "Right"], type("o"), ["End", "Enter"]],
          /^hello/m,
        ],
        [[["Up", "C-w"], type("again"), ["Enter"]], /^again/m],
        [[type("cat numb"), ["Tab", "Enter"]], /^line 300/m],
        [[type("cat"), ["Enter"]], />> cat\n/],
        [[type("to be stopped"), ["Enter"]], /(to be stopped\s+){2}/],
        [[["C-z"]], /Stopped/],
        [[type("fg"), ["Enter"]], /fg\ncat\n/],
        [[type("more"), ["Enter"]], /(more\s+){2}/],
        [[["C-c"]], /\^C\n>>/],
        [[type("stty -a | head -n 1; tput cols lines"), ["Enter"]], /^24$/m],
        [[resize(97, 31), type("stty size"), ["Enter"]], /^31 97$/m],
        [[type("ls -l --color=always"), ["Enter"]], /numbers\n/],
        [[type('read -rsp silent: x; echo "[$x]"'), ["Enter"]], /^silent:/m],
        [[type("unseen"), ["Enter"]], /\[unseen\]/],
        [[["C-r"], type("hell")], /reverse-i-search.*hello/],
        [[["C-g"], type(String.raw`printf '\033[?25l\033[3;9r\033[4h\033[?7l'`), ["Enter"]], />>/],
      ],
    },
    {
      name: "vim",
      argv: ["vim", "-u", "NONE", "-i", "NONE", "-N", "-n", "text"],
      steps: [
        [[], /first words/],
        [[type("Goadded 日本 at the end"), ["Escape"]], /added 日本/],
        [[type("gg:set number hlsearch ruler"), ["Enter"], type("/words"), ["Enter"]], /1 first/],
        [[type(":split"), ["Enter"], type(":vsplit"), ["Enter", "C-w"], type("jzt")], /added/],
        [[type("ggVjdu"), type("ixyz"), ["Escape"]], /xyz/],
        [[resize(97, 31), type(":echo &columns &lines"), ["Enter"]], /^97 31$/m],
        [[type(":!echo out''side"), ["Enter"]], /^outside/m],
        [[["Enter"], type(":q!"), ["Enter"], type(":q!"), ["Enter"]], /2,1 |3,1 /],
        [[type(":set nonumber title titlestring=words"), ["Enter"], type("dd")], /second line/],
        [[type(":q!"), ["Enter"]], /ended 0/],
      ],
    },
    {
      name: "less",
      argv: ["less", "-R", "-S", "numbers"],
      steps: [
        [[], /^line 1$/m],
        [[["Space"], type("j"), ["Down", "NPage"]], /^line 60$/m],
        [[type("/line 25"), ["Enter"]], /^line 250$/m],
        [[type("nG")], /^line 300$/m],
        [[type("-N"), ["Enter"], type("g"), ["Right"]], /^ +1$/m],
        [[resize(97, 31)], /^ +29$/m],
        [[type("h")], /SUMMARY OF LESS COMMANDS/],
        [[type("qq")], /ended 0/],
      ],
    },
    {
      name: "nano",
      argv: ["nano", "--ignorercfiles", "--linenumbers", "--softwrap", "--mouse", "text"],
      steps: [
        [[], /first words/],
        [[type("typed 日本 here ")], /here first/],
        [[["Down", "End", "Enter"], type("next")], /3 next/],
        [[["C-w"]], /Search:/],
        [[type("second")], /Search: second/],
        [[["Enter"]], /Search Wrapped/],
        [[["M-a"]], /Mark Set/],
        [[["Down", "End"]], /3 next/],
        [[["M-6"]], /Copied 2 lines|3 next/],
        [[oldClick(7, 3), type("CLICKED")], /2 secCLICKED/],
        [[["C-x"]], /Save modified buffer/],
        [[type("n")], /ended 0/],
      ],
    },
    {
      name: "mc",
      argv: ["env", ...own, "mc", "--nosubshell", ".", "sub"],
      steps: [
        [[], /inner[^]*numbers/],
        [[["End", "Up", "IC", "Up"]], /2,592 B in 1 file/],
        [[["F3"]], /line 20/],
        [[["NPage"]], /line 40/],
        [[resize(97, 31)], /line 50/],
        [[resize(80, 24)], /10Quit/],
        [[["F10"]], /inner[^]*numbers/],
        [[["F9"]], /Left +File +Command/],
        [[["Enter"]], /Listing format/],
        [[["Right"]], /View file/],
        [[["F10"]], /inner[^]*numbers/],
        [[["F7"]], /Enter directory name/],
        [[type("made 日本")], /made 日本/],
        [[["F10"]], /inner[^]*numbers/],
        [[click(3, 1)], /Listing format/],
        [[["F10"]], /inner[^]*numbers/],
        [[click(14, 5)], /HEAD/],
        [[click(77, 24)], /ended 0/],
      ],
    },
    {
      name: "htop",
      // Its meters and the machine's processes move: no meters, one process, no figures of it.
      argv: ["env", ...own, "htop", `--pid=${sleeper}`],
      steps: [
        [[], /sleep/],
        [[["F1"]], /htop 3/],
        [[["Space"]], /1Help|F1Help/],
        [[["F5"]], /List/],
        [[["F6"]], /Sort by/],
        [[["Escape"]], /1Help|F1Help/],
        [[["Space", "F4"]], /Filter:/],
        [[type("slee")], /Filter: slee/],
        [[["Enter"]], /1Help|F1Help/],
        [[resize(60, 20), ["F2"]], /Categories/],
        [[["Down", "Right"]], /Display options/],
        [[["F10"]], /1Help|F1Help/],
        [[oldClick(4, 20)], /htop 3/],
        [[type("q")], /1Help|F1Help/],
        [[type("q")], /ended 0/],
      ],
    },
    {
      name: "a mouse-driven program",
      argv: ["sh", "-c", MOUSE_DRIVEN],
      steps: [
        [[], /waits in mode 9/],
        ...MOUSE_MODES.slice(1).map((mode): Step => [
          [click(5, 6)],
          new RegExp(`waits in mode ${mode}\\b`),
        ]),
        [[click(5, 6)], /all modes.*ended 0/],
      ],
    },
  ];
}

/** All that tmux knows of a pane beside its cells. */
const STATE = [
  "cursor_x cursor_y cursor_flag pane_title alternate_on alternate_saved_x alternate_saved_y",
  "mouse_any_flag mouse_all_flag mouse_button_flag mouse_standard_flag mouse_sgr_flag",
  "mouse_utf8_flag keypad_cursor_flag keypad_flag insert_flag wrap_flag origin_flag",
  "scroll_region_upper scroll_region_lower pane_width pane_height pane_tabs history_size",
].join(" ").split(" ").map((name) => `${name}=#{${name}}`).join("\n");

async function shown(world: World, window: string) {
  return {
    screen: await world.tmux("capture-pane", "-p", "-e", "-t", window),
    state: await world.tmux("display-message", "-p", "-t", window, STATE),
  };
}
// deno-lint-ignore no-control-regex
const plain = (screen: string) => screen.replace(/\x1b\[[0-9;]*m/g, "");

async function compare(world: World, program: Program, windows: readonly string[]): Promise<void> {
  for (const [i, [keys, shows]] of program.steps.entries()) {
    for (const window of windows) {
      for (const some of keys) {
        const [first, columns, rows] = some;
        await (first === "resize"
          ? world.tmux("resize-window", "-t", window, "-x", columns!, "-y", rows!)
          : world.tmux("send-keys", "-t", window, ...some));
      }
    }
    let seen: Awaited<ReturnType<typeof shown>>[] = [];
    try {
      await world.until(`${shows} after ${JSON.stringify(keys)} alike`, async () => {
        seen = await Promise.all(windows.map((window) => shown(world, window)));
        const [a, b] = seen;
        return shows.test(plain(a!.screen)) && a!.screen === b!.screen && a!.state === b!.state;
      });
    } catch (error) {
      assert.deepEqual(seen[1], seen[0], `${program.name}, step ${i}: with the broker, without`);
      throw new Error(`${program.name}, step ${i}\n${seen[0]!.screen}`, { cause: error });
    }
  }
}

const HTOPRC = `htop_version=3.2.2
config_reader_min_version=3
fields=0 1
hide_kernel_threads=1
header_layout=one_100
column_meters_0=Blank
column_meter_modes_0=2
screen:Main=PID Command
.sort_key=PID
`;

Deno.test("[B-01] bash, vim, less, nano, mc, htop and a mouse-driven program look the same with and without the broker", async (t) => {
  await using world = await World.create();
  const home = `${world.dir}/home`;
  await Deno.writeTextFile(
    `${home}/.tmux.conf`,
    "set -g default-shell /bin/sh\n" +
      "set -g default-terminal tmux-256color\nset -g remain-on-exit on\n",
  );
  await Deno.writeTextFile(`${world.dir}/htoprc`, HTOPRC);
  const mc = `${world.env.XDG_CONFIG_HOME}/mc`;
  await Deno.mkdir(mc);
  // Free space changes, and the hints are drawn by lot.
  await Deno.writeTextFile(
    `${mc}/ini`,
    "[Layout]\nmessage_visible=0\nfree_space=0\n",
  );
  const sleeper = new Deno.Command("sleep", { args: ["600"] }).spawn();
  try {
    for (const [i, program] of programs(world.dir, sleeper.pid).entries()) {
      await t.step(program.name, async () => {
        const repo = `repo${i}`;
        await world.addRepo(repo);
        const folder = world.repo(repo);
        await Deno.mkdir(`${folder}/sub`);
        await Deno.writeTextFile(`${folder}/sub/inner`, "x\n");
        const numbers = Array.from({ length: 300 }, (_, n) => `line ${n + 1}\n`).join("");
        await Deno.writeTextFile(`${folder}/numbers`, numbers);
        await Deno.writeTextFile(`${folder}/text`, "first words\nsecond line\n日本\n");
        // What the program leaves behind on its terminal is compared as well.
        const script = '"$@"; s=$?; echo " ended $s"; read -r x';
        const argv = ["sh", "-c", script, "sh", ...program.argv];
        await world.open(argv.map((word) => `'${word.replaceAll("'", "'\\''")}'`).join(" "), repo);
        const made = ["new-window", "-d", "-P", "-F", "#{window_id}", "-t", "=tamq:", "-c", folder];
        const bare = (await world.tmux(...made, ...argv)).trim();
        await compare(world, program, [bare, await world.window(repo)]);
      });
    }
  } finally {
    sleeper.kill("SIGKILL");
    await sleeper.status;
  }
});
