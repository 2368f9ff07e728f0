import assert from "node:assert/strict";
import { isInteractiveShell } from "../../../lib/pty/foreground.ts";

Deno.test("[B-16] a shell that takes commands from its terminal is told from one that runs a script", () => {
  const shells = [
    "bash",
    "-bash",
    "/bin/zsh -l",
    "bash -i",
    "bash --norc -i",
    "bash --rcfile /x",
    "bash -o vi",
    "bash -s arg",
    "fish",
    "fish -C ls",
    "sh",
    "dash -i",
    "ksh",
    "busybox ash",
    "python3 /usr/bin/xonsh",
    "tcsh",
    "elvish",
    "nu",
    "pwsh -NoLogo",
    "zsh -f",
    "bash --unknown-option",
  ];
  const programs = [
    "bash -c ls",
    "bash -lc ls",
    "sh ./worker.sh",
    "bash -- script",
    "bash --norc script",
    "bash -o vi script",
    "fish -c ls",
    "fish script.fish",
    "nu --commands ls",
    "pwsh -Command ls",
    "python3",
    "python3 script.py",
    "cat",
    "node",
    "deno run bash",
    "busybox cat",
  ];
  for (const line of shells) assert.equal(isInteractiveShell(line.split(" ")), true, line);
  for (const line of programs) assert.equal(isInteractiveShell(line.split(" ")), false, line);
  // A shell under another name is known by the kernel's name of the program.
  assert.equal(isInteractiveShell(["editor"], "bash"), true);
});
