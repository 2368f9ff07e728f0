/** Ways in which a message was once executed by a shell (B-16). Each must leave no file `pwned`. */
import assert from "node:assert/strict";
import type { BrokerFrame } from "../../lib/protocol/schema.ts";
import { type ScriptedService, type TestBroker, withAttached } from "../helpers/broker.ts";
import { withTempDir } from "../helpers/temp.ts";

const BODY = "; touch pwned #";

const reasonOf = (service: ScriptedService) => {
  const gate = service.frames.findLast((frame) => frame.type === "gate");
  return gate?.type === "gate" && !gate.open ? gate.reason : undefined;
};
const outcomeOf = (frame: BrokerFrame) => (frame as { outcome?: string }).outcome;

interface Case {
  readonly story: string;
  readonly command: (dir: string) => string[];
  readonly prepare?: (dir: string) => Promise<unknown>;
  /** Keys first, once the window is there. */
  readonly keys?: string;
  /** What becomes of a message: displayed, or the reason for which the gate stays closed. */
  readonly end: "displayed" | "not_reading" | "raw_reader" | "foreground_unknown";
}

const CASES: readonly Case[] = [
  {
    story: "a shell that comes after a program which reads nothing",
    command: () => ["sh", "-c", "sleep 0.8; exec bash --norc --noprofile"],
    end: "displayed",
  },
  {
    story: "a program in front that reads nothing, a script behind it",
    command: () => ["sh", "-c", "sleep 60; exec bash"],
    end: "not_reading",
  },
  {
    story: "a shell that a program started, behind one that reads nothing",
    command: () => ["python3", "-c", "import os; os.system('bash --norc --noprofile')"],
    keys: "sleep 60\r",
    end: "displayed",
  },
  {
    story: "a shell below timeout",
    command: () => ["timeout", "--foreground", "60", "bash", "--norc", "--noprofile"],
    keys: "sleep 60\r",
    end: "displayed",
  },
  {
    story: "a shell inside a shell's script",
    command: () => ["sh", "-c", "dash; true"],
    keys: "sleep 60\r",
    end: "displayed",
  },
  {
    story: "a shell on a terminal within the terminal",
    command: () => ["python3", "-c", "import pty; pty.spawn(['bash', '--norc'])"],
    end: "foreground_unknown",
  },
  {
    story: "a program that carries another user's shell, with something else in front",
    prepare: (dir) => Deno.symlink("/bin/bash", `${dir}/su`),
    command: (dir) => [`${dir}/su`, "-c", "sleep 60; true"],
    end: "foreground_unknown",
  },
  {
    story: "a link to a shell by another name",
    prepare: (dir) => Deno.symlink("/bin/dash", `${dir}/tool`),
    command: (dir) => [`${dir}/tool`],
    end: "displayed",
  },
  {
    story: "a copy of a shell by another name",
    prepare: (dir) => Deno.copyFile("/bin/dash", `${dir}/tool`),
    command: (dir) => [`${dir}/tool`],
    end: "displayed",
  },
  {
    story: "a shell whose script is its terminal",
    command: () => ["bash", "/dev/tty"],
    end: "displayed",
  },
  {
    story: "a shell whose script is a link to its terminal",
    prepare: (dir) => Deno.symlink("/dev/tty", `${dir}/script`),
    command: (dir) => ["bash", `${dir}/script`],
    end: "displayed",
  },
  {
    story: "a program of single keys before a shell",
    command: () => [
      "sh",
      "-c",
      'python3 -c "import tty,os; tty.setraw(0); os.write(1,b\\"UP\\"); os.read(0,1)"; bash',
    ],
    end: "raw_reader",
  },
  {
    story: "a pager that runs commands after an exclamation mark",
    prepare: (dir) => Deno.writeTextFile(`${dir}/long`, "line\n".repeat(200)),
    command: (dir) => ["more", `${dir}/long`],
    end: "raw_reader",
  },
  {
    story: "a pager before which a program died that had asked for bracketed paste",
    prepare: (dir) => Deno.writeTextFile(`${dir}/long`, "line\n".repeat(200)),
    command: (dir) => ["sh", "-c", `printf '\\033[?2004h'; more ${dir}/long; true`],
    end: "raw_reader",
  },
  {
    story: "a question of one key",
    command: () => ["bash", "-c", "read -r -n 1 -p 'sure? ' x; echo; bash"],
    end: "raw_reader",
  },
];

for (const { story, command, prepare, keys, end } of CASES) {
  Deno.test(`[B-16] nothing of a message is run by ${story}`, () =>
    withTempDir(async (dir) => {
      await prepare?.(dir);
      await withAttached({ command: command(dir), dir }, (broker) => attempt(broker, keys, end));
      assert.deepEqual([...Deno.readDirSync(dir)].filter(({ name }) => name === "pwned"), []);
    }));
}

async function attempt(
  { service, terminal }: TestBroker & { service: ScriptedService },
  keys: string | undefined,
  end: Case["end"],
): Promise<void> {
  if (keys !== undefined) {
    await terminal.until(/[$#] $/);
    await terminal.type(keys);
    await service.when(() => reasonOf(service) === "operator_typing");
  }
  if (end === "displayed") {
    assert.equal(outcomeOf(await service.deliver(BODY)), "displayed");
    await terminal.until(`From:beta: ${BODY}`);
    return;
  }
  await service.when(() => reasonOf(service) === end);
  assert.ok(!terminal.text.includes("From:"));
}

const PASSWORDS: Record<string, string[]> = {
  "bash's read -s": ["bash", "-c", "read -rsp 'Password: ' p; echo; echo got=$p; cat"],
  "python's getpass": [
    "python3",
    "-c",
    "import getpass, sys\nprint('got=' + getpass.getpass('Password: '), flush=True)\n" +
    "for line in sys.stdin: print(line, flush=True)",
  ],
};

for (const [name, command] of Object.entries(PASSWORDS)) {
  Deno.test(`[B-08][B-16] no message is taken for the password that ${name} asks for; it arrives afterwards`, () =>
    withTempDir((dir) =>
      withAttached({ command, dir }, async ({ service, terminal }) => {
        await terminal.until("Password: ");
        await service.when(() => service.open || reasonOf(service) === "echo_off");
        assert.equal(service.open, false);
        await terminal.type("hunter2\r");
        await terminal.until("got=hunter2");
        assert.equal(outcomeOf(await service.deliver("hello")), "written");
        await terminal.until("From:beta: hello");
      })
    ));
}

/** Programs that read lines must go on getting messages, however their runtimes wait. */
const READERS: Record<string, string[]> = {
  "cat in a script": ["sh", "-c", "cat; true"],
  "read in a script": ["sh", "-c", 'while read -r l; do echo "got $l"; done'],
  "input()": ["python3", "-c", "l = input('> ')\nprint('got', l)\ninput()"],
  "a loop of Deno": [
    Deno.execPath(),
    "eval",
    "for await (const part of Deno.stdin.readable) " +
    "console.log('got', new TextDecoder().decode(part))",
  ],
  "python's prompt": ["python3", "-q", "-i"],
};
if (hasNode()) {
  const script = "const rl = require('readline').createInterface({input: process.stdin, " +
    "output: process.stdout, prompt: '> '}); rl.prompt(); " +
    "rl.on('line', (l) => { console.log('got', l); rl.prompt(); })";
  READERS["node's line editor"] = ["node", "-e", script];
  READERS["node's stream"] = ["node", "-e", "process.stdin.on('data', (d) => console.log('' + d))"];
}

function hasNode(): boolean {
  try {
    return new Deno.Command("node", { args: ["--version"], stdout: "null" }).outputSync().success;
  } catch {
    return false;
  }
}

for (const [name, command] of Object.entries(READERS)) {
  Deno.test(`[B-05][B-16] ${name} waits for input and gets messages, one after the other`, () =>
    withTempDir((dir) =>
      withAttached({ command, dir }, async ({ service, terminal }) => {
        for (const text of ["first", "second"]) {
          assert.equal(outcomeOf(await service.deliver(text)), "written");
          await terminal.until(`From:beta: ${text}`);
        }
      })
    ));
}
