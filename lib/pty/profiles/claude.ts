/** Claude Code; measured with 2.1.332. */
export const CLAUDE = String.raw`
name = "claude"
match = ["claude"]

[launch]
not_with = ["-p", "--print", "mcp", "config", "update", "doctor", "install", "migrate-installer",
  "setup-token", "--help", "-h", "--version", "-v"]
[launch.env]
# Its full-screen mode never paints the middle of a long reply.
CLAUDE_CODE_DISABLE_ALTERNATE_SCREEN = "1"

[input]
paste = "bracketed"
queues = true
# A longer paste is shown as a placeholder and wrapped for the model; shorter ones arrive verbatim.
chunk = { lines = 2, chars = 700 }

[status]
osc_7501 = true
[status.busy]
rows = ['esc to interrupt']
[status.dialog]
rows = ['Do you want to (proceed|make this edit|create|allow)', '^ *❯ 1\. Yes', 'Enter to (confirm|stay|continue|select|proceed)\b', 'Esc to cancel$', 'Do you trust the files']

[screen]
reply = '[●⏺] '
tool_heads = ['[A-Z][A-Za-z]*( [A-Z][A-Za-z]*)*\(']
indent = 2
echo = '[❯>][ \u00a0]'
tool = [' +⎿', '[✻✽✢✳✶·∗*] ', ' *[╭│╰]']
chrome = ['[─▔▁▀▄]{8,}', ' *\? for shortcuts', ' +esc to interrupt']
wrap_margin = 0
# Behind the mark stands a no-break space while there is text.
prompt = '[❯>][ \u00a0]'
placeholders = ['Try "']
pasted = ['\[Pasted text #\d+']
`;
