/** The command table: help, versions, complaints – everything that needs no service. */
import assert from "node:assert/strict";
import manifest from "../../../deno.json" with { type: "json" };
import { type AnyCommand, type Family, isFamily } from "../../../lib/cli/command.ts";
import { COMMANDS, FAMILIES, GROUPS } from "../../../lib/cli/program.ts";
import { HOT } from "../../../lib/cli/run.ts";
import { FAILURE_CODES } from "../../../lib/base/errors.ts";
import { PROTOCOL } from "../../../lib/protocol/handshake.ts";
import { operations } from "../../../lib/protocol/operations.ts";
import { runInside } from "../../helpers/cli.ts";

const VERBS = Object.keys(COMMANDS);

Deno.test("[C-01] every command has help with synopsis, options and examples, by --help, -h and help", async () => {
  for (const verb of VERBS) {
    const long = await runInside([verb, "--help"]);
    assert.equal(long.code, 0, verb);
    assert.equal(long.stderr, "");
    assert.match(long.stdout, new RegExp(`^USAGE\n  tamq ${verb}`), verb);
    assert.match(long.stdout, /\nEXAMPLES\n {2}\S.*\n {6}\S/, verb);
    assert.match(long.stdout, /-h +--help/);
    assert.match(long.stdout, /-V +--version/);
    assert.doesNotMatch(long.stdout, /^ {2}tamq \S+ --(help|version)$/m);
    // deno-lint-ignore no-control-regex
    assert.doesNotMatch(long.stdout, /\u001b/);
    assert.equal((await runInside([verb, "-h"])).stdout, long.stdout);
    assert.equal((await runInside(["help", verb])).stdout, long.stdout);
  }
});

Deno.test("[C-01, V-02, V-03] every command prints the version of deno.json, by --version and -V", async () => {
  for (const args of [[], ...VERBS.map((verb) => [verb])]) {
    for (const flag of ["--version", "-V"]) {
      const { code, stdout, stderr } = await runInside([...args, flag]);
      assert.deepEqual([code, stdout, stderr], [0, `tamq ${manifest.version}\n`, ""], args.join());
    }
  }
});

Deno.test("[C-01] the overview names every command that is not hidden", async () => {
  const { code, stdout } = await runInside([]);
  assert.equal(code, 0);
  assert.equal((await runInside(["--help"])).stdout, stdout);
  assert.equal((await runInside(["help"])).stdout, stdout);
  const listed = GROUPS.flatMap(([, names]) => names);
  assert.deepEqual(
    [...listed].sort(),
    [...VERBS.filter((verb) => verb !== "broker"), ...Object.keys(FAMILIES)].sort(),
  );
  for (const name of listed) assert.match(stdout, new RegExp(`^  ${name} +\\S`, "m"));
});

/** Every command with the words that name it, at any depth. */
function everyCommand(): [string[], AnyCommand][] {
  const walk = (words: string[], entry: AnyCommand | Family): [string[], AnyCommand][] =>
    isFamily(entry)
      ? Object.entries(entry.commands).flatMap(([word, one]) => walk([...words, word], one))
      : [[words, entry]];
  return Object.entries({ ...COMMANDS, ...FAMILIES }).flatMap(([word, one]) => walk([word], one));
}

const kebab = (name: string) => name.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`);

Deno.test("[C-01, C-07] walking the table: every command explains itself with synopsis, options, examples and exit statuses", async () => {
  const commands = everyCommand();
  assert.ok(commands.length > 50, String(commands.length));
  for (const [words, command] of commands) {
    const name = words.join(" ");
    const { code, stdout, stderr } = await runInside([...words, "--help"]);
    assert.deepEqual([code, stderr], [0, ""], name);
    assert.ok(stdout.startsWith(`USAGE\n  tamq ${name}`), name);
    assert.match(stdout, /\n\nEXAMPLES\n {2}\S/, name);
    assert.match(stdout, /\n\nEXIT STATUS\n {2}0 success, 1 failure, 2 usage, /, name);
    for (const [option, { hidden, kind }] of Object.entries(command.parameters.flags)) {
      if (hidden) assert.ok(!stdout.includes(`--${kebab(option)} `), `${name} hides ${option}`);
      else assert.match(stdout, new RegExp(`--${kebab(option)}\\b`), `${name} ${option} ${kind}`);
    }
    for (const { run } of command.examples) assert.ok(/\btamq\b/.test(run), `${name}: ${run}`);
    assert.equal((await runInside([...words, "-h"])).stdout, stdout, name);
  }
});

Deno.test("[C-01, C-07] walking the table: a misspelt option or value is named, with the nearest one that there is", async () => {
  let options = 0;
  let values = 0;
  for (const [words, command] of everyCommand()) {
    for (
      const [option, { hidden, kind, values: allowed }] of Object.entries(
        command.parameters.flags,
      )
    ) {
      const name = kebab(option);
      if (hidden || name.length < 5) continue;
      const wrong = `${name.slice(0, -2)}${name.at(-1)}${name.at(-2)}`;
      if (wrong === name) continue;
      const { code, stdout, stderr } = await runInside([...words, `--${wrong}`]);
      assert.deepEqual([code, stdout], [2, ""], `${words.join(" ")} --${wrong}: ${stderr}`);
      assert.ok(stderr.startsWith(`tamq: unknown option --${wrong}; did you mean `), stderr);
      assert.ok(stderr.includes(`--${name}`), stderr);
      options++;
      const value = kind === "enum" ? allowed!.find((one) => one.length > 4) : undefined;
      if (value === undefined) continue;
      const bad = await runInside([...words, `--${name}`, `${value}x`]);
      assert.equal(bad.code, 2, bad.stderr);
      if (/ is missing\n/.test(bad.stderr)) continue; // said first
      assert.ok(bad.stderr.includes(`not "${value}x"; did you mean ${value}?`), bad.stderr);
      values++;
    }
  }
  assert.ok(options > 50 && values > 5, `${options} options, ${values} values`);
});

Deno.test("[T-22, V-04] tamq help protocol names version, every operation and every failure code", async () => {
  const { code, stdout } = await runInside(["help", "protocol"]);
  assert.equal(code, 0);
  for (const name of Object.keys(operations)) {
    assert.match(stdout, new RegExp(`^ {2}${name} +\\S`, "m"));
  }
  for (const one of FAILURE_CODES) assert.match(stdout, new RegExp(`^ {2}${one} +\\S`, "m"));
  assert.ok(stdout.includes(PROTOCOL));
});

Deno.test("[V-05] commands with a short way are those of the table", async () => {
  for (const [name, load] of Object.entries(HOT)) assert.equal(await load(), COMMANDS[name], name);
  assert.ok(Object.keys(HOT).length > 0);
});

Deno.test("[C-07] tamq help exit-codes lists every status; an unknown topic is a usage error with a suggestion", async () => {
  const { code, stdout } = await runInside(["help", "exit-codes"]);
  assert.equal(code, 0);
  for (const status of [0, 1, 2, 3, 4, 5]) {
    assert.match(stdout, new RegExp(`^  ${status}  \\S`, "m"));
  }
  const unknown = await runInside(["help", "exitcodes"]);
  assert.equal(unknown.code, 2);
  assert.match(unknown.stderr, /^tamq: .*"exitcodes"\nhint: did you mean "exit-codes"\?\n$/);
});

Deno.test("[C-01, C-07] a wrong command line is status 2, one line that names the word, and a hint", async () => {
  const cases: [string[], RegExp][] = [
    [["sned"], /unknown command "sned"\nhint: did you mean "send"/],
    [["constructor"], /unknown command "constructor"/],
    [
      ["alpha", "beta"],
      /unknown command "alpha"\nhint: .*; to open .*: tamq --command CMD alpha\n/,
    ],
    [["--frob"], /unknown option "--frob"/],
    [["send", "--frob"], /unknown option --frob/],
    [["send", "--constructor"], /unknown option --constructor/],
    [["send", "-x"], /unknown option -x/],
    [["send", "--jsn", "x"], /unknown option --jsn; did you mean --json\?/],
    [["send", "--to"], /option --to needs a value/],
    [["send", "--to", "a", "--to", "b", "x"], /option --to is given twice/],
    [["ping", "extra"], /unexpected argument "extra"/],
    [["message"], /argument ID is missing/],
    [["start", "--command", "cat"], /argument REPO is missing/],
    [["--command", "cat"], /argument REPO is missing/],
    [["start", "alpha"], /option --command is missing/],
    [["start", "alpha", "--command"], /option --command needs a value/],
    [["start", "alpha", "-c"], /option --command needs a value/],
    [["--comand", "cat", "alpha"], /unknown option "--comand"\nhint: did you mean --command\?/],
    [["--verison"], /unknown option "--verison"\nhint: did you mean --version\?/],
    [["send", "--verison"], /unknown option --verison; did you mean --version\?/],
    [["start", "--tmux-sokcet", "x"], /unknown option --tmux-sokcet; did you mean --tmux-socket\?/],
    [["serve", "--detached-chil"], /unknown option --detached-chil(?!.*--detached-child)/],
    [["version"], /unknown command "version"\nhint: try: tamq --version\n/],
    [["list"], /unknown command "list"\nhint: try: tamq who .* tamq history/],
    [["history", "--limit", "0"], /"0" is no --limit: a whole number from 1 to 10000/],
    [["history", "-nx"], /unknown option -x|option/],
    [["history", "--state", "lost"], /--state is one of pending, .*, not "lost"/],
    [["history", "--since", "soon"], /--since "soon" is no time/],
    [["start", "-c", "cat", "--mode", "loud", "a"], /--mode is one of trigger, draft, hold/],
    [["completion", "tcsh"], /"tcsh" is no SHELL: one of bash, zsh, fish/],
    [["serve", "--quiet", "--verbose"], /--quiet and --verbose exclude each other/],
    [["message", "a\u001b[2Jb", "c"], /unexpected argument "c"/],
    [["send", "To:alpha: x", "--key", ""], /--key is empty/],
    [["send", "--to", "", "x"], /--to is empty/],
    [
      ["send", "To:alpha:text"],
      /a blank must follow the second colon of "To:alpha:"\nhint: .*'To:alpha: TEXT'/,
    ],
    [["send", "To: alpha: text"], /does not begin with To:REPO: and a blank\nhint: .*'To:alpha:/],
    [["send", "To:alpha: a\r\nb"], /Windows line ends \(CRLF, .*line 1\nhint: .*dos2unix/],
  ];
  const env = { HOME: "/nonexistent" };
  for (const [args, expected] of cases) {
    const { code, stdout, stderr } = await runInside(args, { env });
    assert.equal(code, 2, `${args.join(" ")}: ${stderr}`);
    assert.equal(stdout, "", args.join(" "));
    assert.match(stderr, expected);
    assert.match(stderr, /^tamq: [^\n]+\nhint: [^\n]+\n$/, args.join(" "));

    const json = await runInside([...args, "--json"], { env });
    assert.equal(json.code, 2);
    if (args.includes("--to") && args.at(-1) === "--to") continue; // takes --json for its value
    const error = JSON.parse(json.stderr) as { code: string; retry: string };
    assert.deepEqual([error.code, error.retry], ["INVALID_ARGUMENT", "never"], args.join(" "));
  }
});

Deno.test("[C-01] the guide fits into instructions: plain, short, no line that would be taken for a message", async () => {
  const { code, stdout } = await runInside(["guide"]);
  assert.equal(code, 0);
  assert.ok(stdout.split("\n").length < 50);
  for (
    const word of ["To:beta:", "From:beta:", "--file -", "tamq who", "tamq ack", "Never acknowl"]
  ) {
    assert.ok(stdout.includes(word), word);
  }
  assert.doesNotMatch(stdout, /^(To|From):/m);
});

/** Every command of several words, as a list of its words. */
function members(words: string[], entry: AnyCommand | Family): [string[], AnyCommand | Family][] {
  const own: [string[], AnyCommand | Family][] = [[words, entry]];
  if (!isFamily(entry)) return own;
  return [
    ...own,
    ...Object.entries(entry.commands).flatMap(([name, below]) => members([...words, name], below)),
  ];
}
const MEMBERS = Object.entries(FAMILIES).flatMap(([name, entry]) => members([name], entry));

Deno.test("[C-01, K-19] commands of several words have help, synopsis and examples; a family lists its own", async () => {
  assert.ok(MEMBERS.length > 20);
  for (const [words, entry] of MEMBERS) {
    const { code, stdout, stderr } = await runInside([...words, "--help"]);
    assert.deepEqual([code, stderr], [0, ""], words.join(" "));
    assert.match(stdout, new RegExp(`^USAGE\n  tamq ${words.join(" ")}`), words.join(" "));
    if (isFamily(entry)) {
      for (const name of Object.keys(entry.commands)) {
        assert.match(stdout, new RegExp(`^  ${name} +\\S`, "m"));
      }
      assert.deepEqual((await runInside(words)).stdout, stdout, words.join(" "));
    } else {
      assert.match(stdout, /\nEXAMPLES\n {2}\S.*\n {6}\S/, words.join(" "));
      assert.doesNotMatch(stdout, /^ {2}tamq [a-z ]+ --(help|version)$/m);
    }
  }
});

Deno.test("[C-01, C-07] wrong words below a family are status 2 with a hint", async () => {
  const cases: [string[], RegExp][] = [
    [["hub", "tsak"], /unknown command "tsak"\nhint: did you mean "task"\?\n/],
    [["hub", "task", "ad"], /unknown command "ad"\nhint: did you mean "add"/],
    [["hub", "task", "show"], /argument TASK is missing\nhint: see: tamq hub task show --help/],
    [["hub", "task", "add", "x"], /option --repo /],
    [["hub", "task", "block", "x", "--kind", "odd"], /--kind is one of human, /],
    [["hub", "serve", "--tcp", "99999"], /no --tcp: a whole number from 0 to 65535/],
    [["hub", "constructor"], /unknown command "constructor"/],
  ];
  for (const [words, expected] of cases) {
    const { code, stderr } = await runInside(words);
    assert.equal(code, 2, words.join(" "));
    assert.match(stderr, expected);
  }
});
