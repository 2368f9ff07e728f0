import assert from "node:assert/strict";
import type { BrokerFrame } from "../../lib/protocol/schema.ts";
import { type ScriptedService, withAttached } from "../helpers/broker.ts";
import { withTempDir } from "../helpers/temp.ts";

type Settle = Extract<BrokerFrame, { type: "settle" }>;
const outcome = (frame: BrokerFrame) => {
  const { outcome, reason, scope } = frame as Settle;
  return [outcome, reason, scope];
};

const closedFor = (service: ScriptedService, reason: string) => {
  const gate = service.frames.findLast((frame) => frame.type === "gate");
  return gate?.type === "gate" && !gate.open && gate.reason === reason;
};

Deno.test("[B-05][B-09] several lines reach a line reader flattened, and the record says so", () =>
  withTempDir((dir) =>
    withAttached(
      { command: ["sh", "-c", 'read -r a; echo "got[$a]"; read x'], dir },
      async ({ service, terminal }) => {
        const settled = await service.deliver("please rebase\nsecond line");
        assert.deepEqual(outcome(settled), ["written", "flattened", undefined]);
        await terminal.until("got[From:beta: please rebase ⏎ second line]");
      },
    )
  ));

Deno.test("[B-09][B-10] a program that takes pastes gets all of 8 KiB in one submission", () =>
  withTempDir((dir) => {
    const agent = new URL("../agents/paste_reader.ts", import.meta.url).pathname;
    const command = [Deno.execPath(), "run", "--no-lock", "--no-config", "-A", agent, `${dir}/got`];
    return withAttached({ command, dir }, async ({ service, terminal }) => {
      await terminal.until("READY");
      const body = Array.from({ length: 80 }, (_, i) => `${i} ${"wörd ".repeat(16)}`).join("\n");
      assert.deepEqual(outcome(await service.deliver(body)), ["written", undefined, undefined]);
      await terminal.until("SUBMITTED 1");
      const got = JSON.parse(await Deno.readTextFile(`${dir}/got`));
      assert.deepEqual(got, [`From:beta: ${body} `]);
      assert.equal(service.sends.length, 0);
    });
  }));

Deno.test("[B-09] readline gets a message by bracketed paste as one line", () =>
  withTempDir((dir) => {
    const script = "bind 'set enable-bracketed-paste on'; read -r -e a; echo \"got[$a]\"; read x";
    return withAttached({ command: ["bash", "-c", script], dir }, async ({ service, terminal }) => {
      await terminal.until("\x1b[?2004h");
      const settled = await service.deliver("a\ttab and `quotes` !");
      assert.deepEqual(outcome(settled), ["written", undefined, undefined]);
      await terminal.until("got[From:beta: a\ttab and `quotes` !]");
    });
  }));

Deno.test("[B-09] an editor without bracketed paste gets one line", () =>
  withTempDir((dir) => {
    const script = "bind 'set enable-bracketed-paste off'; read -r -e a; " +
      'echo "got[$a]"; read x';
    return withAttached({ command: ["bash", "-c", script], dir }, async ({ service, terminal }) => {
      const settled = await service.deliver("one\n\ttwo");
      assert.deepEqual(outcome(settled), ["written", "flattened", undefined]);
      await terminal.until("got[From:beta: one ⏎     two]");
    });
  }));

Deno.test("[B-10] what the kernel cannot gather as one line is refused whole, and the next one goes", () =>
  withTempDir((dir) => {
    const script = 'echo UP; while read -r a; do echo "got ${#a}"; done';
    return withAttached({ command: ["sh", "-c", script], dir }, async ({ service, terminal }) => {
      await terminal.until("UP");
      const label = "From:beta: ".length;
      for (const size of [8192, 4001 - label]) {
        const refused = await service.deliver("x".repeat(size));
        assert.deepEqual(outcome(refused), ["failed", "line_too_long", "message"]);
      }
      const most = await service.deliver("x".repeat(4000 - label));
      assert.deepEqual(outcome(most), ["written", undefined, undefined]);
      await terminal.until("got 4000");
      assert.equal(terminal.text.match(/got \d+/g)!.length, 1, "nothing of the others was typed");
    });
  }));

Deno.test("[B-10][B-16] messages for a reader that is busy wait in the queue, then come one by one", () =>
  withTempDir(async (dir) => {
    await new Deno.Command("mkfifo", { args: [`${dir}/go`] }).output();
    const script = 'echo UP; read -r x < go; while read -r a; do echo "${#a}"; done';
    await withAttached({ command: ["sh", "-c", script], dir }, async ({ service, terminal }) => {
      await terminal.until("UP");
      await service.when(() => closedFor(service, "not_reading"));
      assert.equal(service.open, false);
      await Deno.writeTextFile(`${dir}/go`, "\n");
      for (const size of [3000, 3001, 3002]) {
        const settled = await service.deliver("x".repeat(size - "From:beta: ".length));
        assert.equal(outcome(settled)[0], "written");
      }
      await terminal.until(/\n3000\r\n[^]*\n3001\r\n[^]*\n3002\r\n/);
    });
  }));

Deno.test("[B-16] nothing of a message is run at a shell's prompt", () =>
  withTempDir((dir) =>
    withAttached(
      { command: ["bash", "--norc", "--noprofile", "-i"], dir },
      async ({ service, terminal }) => {
        await terminal.until(/[$#] $/);
        const bodies = [
          "; touch pwned",
          "$(touch pwned)",
          "`touch pwned`",
          "!touch pwned",
          "x\ntouch pwned",
          "x\n\ntouch pwned\n",
        ];
        for (const body of bodies) {
          const from = terminal.text.length;
          assert.deepEqual(outcome(await service.deliver(body)), [
            "displayed",
            undefined,
            undefined,
          ]);
          const [first, ...more] = body.split("\n");
          // On rows of its own, then the prompt again.
          const rows = [`From:beta: ${first}`, ...more.map((line) => `  ${line}`)].join("\r\n");
          const shown = await terminal.until(/From:beta: [^]*[$#] $/, from);
          assert.ok(shown.includes(`\r\n${rows}\r\n`), JSON.stringify(shown));
        }
        const from = terminal.text.length;
        await terminal.type("ls -a; echo listed\r");
        await terminal.until("\nlisted", from);
        assert.ok(!terminal.text.slice(from).includes("pwned"));
        assert.deepEqual([...Deno.readDirSync(dir)].filter(({ name }) => name === "pwned"), []);
        assert.equal(service.sends.length, 0);
      },
    )
  ));

for (
  const [shell, args, prompt] of [
    ["dash", ["-i"], "[$#] "],
    ["zsh", ["-f"], "[%#] "],
    ["fish", ["--no-config"], "[>#] [^ ]*"],
  ] as const
) {
  Deno.test(`[B-16] in a window of ${shell} messages are displayed, also to its commands`, () =>
    withTempDir((dir) =>
      withAttached({ command: [shell, ...args], dir }, async ({ service, terminal }) => {
        assert.deepEqual(outcome(await service.deliver("; touch pwned")), [
          "displayed",
          undefined,
          undefined,
        ]);
        // On a row of its own, then the prompt again.
        await terminal.until(new RegExp(`From:beta: ; touch pwned\r\n[^]*${prompt}$`));
        await terminal.type("printf 'U%s\\n' P; cat\r");
        await terminal.until("UP");
        assert.deepEqual(outcome(await service.deliver("touch pwned")), [
          "displayed",
          undefined,
          undefined,
        ]);
        await terminal.until("From:beta: touch pwned\r\n");
        assert.deepEqual([...Deno.readDirSync(dir)].filter(({ name }) => name === "pwned"), []);
      })
    ));
}

Deno.test("[B-16] a shell that a program started is displayed to as well", () =>
  withTempDir((dir) =>
    withAttached(
      { command: ["env", "sh", "-c", "bash --norc --noprofile -i; exit 0"], dir },
      async ({ service, terminal }) => {
        await terminal.until(/[$#] $/);
        assert.equal(outcome(await service.deliver("$(touch pwned)"))[0], "displayed");
      },
    )
  ));

Deno.test("[B-16] what is displayed cannot drive the terminal", () =>
  withTempDir((dir) =>
    withAttached({ command: ["bash", "--norc", "-i"], dir }, async ({ service, terminal }) => {
      await terminal.until(/[$#] $/);
      await service.deliver("a\u202eb\u200bc");
      await terminal.until("From:beta: a\\u{202e}b\\u{200b}c\r\n");
      const refused = await service.deliver("a\x1b[2Jb");
      assert.deepEqual(outcome(refused), ["failed", "body_binary", "message"]);
    })
  ));

Deno.test("[B-08] a half-typed line closes the gate; the delivery follows it", () =>
  withTempDir((dir) =>
    withAttached({ command: ["cat"], dir }, async ({ service, terminal }) => {
      await service.when(() => service.open);
      await terminal.type("half");
      await service.when(() => !service.open);
      const delivery = service.deliverNow("message");
      await terminal.type(" a line\r");
      assert.equal(outcome(await delivery)[0], "written");
      const text = await terminal.until(/From:beta: message\r\nFrom:beta: message\r\n/);
      assert.ok(text.startsWith("half a line\r\nhalf a line\r\nFrom:beta"), JSON.stringify(text));
      const gates = service.frames.filter((frame) => frame.type === "gate");
      assert.ok(gates.some((gate) => !gate.open && gate.reason === "operator_typing"));
    })
  ));

Deno.test("[B-08] keys typed while a message is typed follow it", () =>
  withTempDir((dir) => {
    const script = 'read -r -e a; echo "got[$a]"; read -r -e a; echo "got[$a]"; read x';
    return withAttached({ command: ["bash", "-c", script], dir }, async ({ service, terminal }) => {
      await service.when(() => service.open);
      const delivery = service.deliverNow("message");
      await terminal.until("From:beta: message");
      await terminal.type("mine\r");
      assert.equal(outcome(await delivery)[0], "written");
      await terminal.until(/got\[From:beta: message ?\][^]*got\[mine\]/);
    });
  }));

Deno.test("[B-08] ^C while a message is typed cancels its Enter", () =>
  withTempDir((dir) => {
    const script = "trap 'echo INT' INT; while :; do read -r -e a && echo \"got[$a]\"; done";
    return withAttached({ command: ["bash", "-c", script], dir }, async ({ service, terminal }) => {
      await service.when(() => service.open);
      const delivery = service.deliverNow("message");
      await terminal.until("From:beta: message");
      await terminal.type("\x03");
      assert.deepEqual(outcome(await delivery), ["failed", "operator_interrupt", "target"]);
      await terminal.until("INT");
      assert.ok(!terminal.text.includes("got["));
    });
  }));

Deno.test("[B-16] in the alternate screen the gate is closed", () =>
  withTempDir((dir) =>
    withAttached(
      {
        command: [
          "sh",
          "-c",
          "printf '\\033[?1049h'; read x; printf '\\033[?1049l'; read -r y; echo \"[$y]\"; read z",
        ],
        dir,
      },
      async ({ service, terminal }) => {
        const gate = () => service.frames.findLast((frame) => frame.type === "gate");
        await service.when(() => {
          const last = gate();
          return last?.type === "gate" && last.reason === "full_screen_program";
        });
        await terminal.type("\r");
        assert.equal(outcome(await service.deliver("after"))[0], "written");
        await terminal.until("[From:beta: after]");
      },
    )
  ));

Deno.test("[B-16] what cannot be looked into gets nothing", () =>
  withTempDir(async (dir) => {
    // A program by the name of one that carries another terminal.
    await Deno.symlink("/bin/cat", `${dir}/ssh`);
    await withAttached({ command: [`${dir}/ssh`], dir }, async ({ service, terminal }) => {
      await service.when(() =>
        service.frames.some((frame) =>
          frame.type === "gate" && frame.reason === "foreground_unknown"
        )
      );
      assert.equal(terminal.text, "");
    });
  }));

Deno.test("[B-11] mode hold writes what the service hands over; mode draft leaves Enter to the operator", () =>
  withTempDir(async (dir) => {
    await withAttached({ command: ["cat"], dir, mode: "hold" }, async ({ service, terminal }) => {
      assert.equal(outcome(await service.deliver("x"))[0], "written");
      await terminal.until("From:beta: x\r\nFrom:beta: x\r\n");
    });
  }).then(() =>
    withTempDir((dir) =>
      withAttached({ command: ["cat"], dir, mode: "draft" }, async ({ service, terminal }) => {
        assert.equal(outcome(await service.deliver("x"))[0], "written");
        await terminal.until("From:beta: x");
        // A second draft waits until this one is submitted: they would run into one line.
        await service.when(() =>
          service.frames.some((f) => f.type === "gate" && f.reason === "operator_typing")
        );
        await terminal.type("!\r");
        await terminal.until("From:beta: x!\r\nFrom:beta: x!\r\n");
        assert.equal(outcome(await service.deliver("y"))[0], "written");
        await terminal.until("\r\nFrom:beta: y");
      })
    )
  ));

Deno.test("[B-08][B-16] a stopped program gets nothing until it goes on", () =>
  withTempDir((dir) => {
    const agent = new URL("../agents/paste_reader.ts", import.meta.url).pathname;
    const command = [Deno.execPath(), "run", "--no-lock", "--no-config", "-A", agent, `${dir}/got`];
    return withAttached({ command, dir }, async ({ service, terminal }) => {
      await terminal.until("READY");
      await service.when(() => service.open);
      const pid = service.attaches[0]!.worker_pid as number;
      Deno.kill(pid, "SIGSTOP");
      const delivery = service.deliverNow("after all");
      await service.when(() => closedFor(service, "not_reading"));
      Deno.kill(pid, "SIGCONT");
      assert.equal(outcome(await delivery)[0], "written");
      await terminal.until("SUBMITTED 1");
      const got = JSON.parse(await Deno.readTextFile(`${dir}/got`)) as string[];
      assert.deepEqual(got, ["From:beta: after all "]);
    });
  }));
