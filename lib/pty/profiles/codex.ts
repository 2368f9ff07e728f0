/** Codex CLI; measured with 0.171.0. */
export const CODEX = String.raw`
name = "codex"
match = ["codex"]

[launch]
# Its own screen is the alternate one, which never paints the middle of a long reply; and the
# background server would outlive the window.
flags = ["--no-alt-screen", "--no-daemon"]
not_with = ["exec", "e", "review", "login", "logout", "mcp", "plugin", "app-server", "mcp-server",
  "remote-control", "completion", "update", "doctor", "sandbox", "debug", "apply", "a", "queue",
  "archive", "delete", "unarchive", "cloud", "exec-server", "features", "help", "agents",
  "migrate-rollouts", "migrate-nfs-db", "--help", "-h", "--version", "-V"]

[input]
paste = "bracketed"
# Enter while it works interrupts it and erases the partial reply; Tab queues.
busy_submit = "\t"
queues = false

[status]
osc_7501 = true
[status.busy]
titles = ['^[\u2801-\u28ff] ']
rows = ['^[•◦] Working \(\d', 'esc to interrupt\)']
[status.dialog]
titles = ['Action Required']
rows = ['^  Press enter to (confirm|continue|select)', '^[›>] 1\. Yes']

[screen]
reply = '• '
indent = 2
echo = '› '
# A tool's own headline needs no sign: its output stands behind └ and │.
tool = ['  [└│] ', '◦ ', '✗ ', '✔ ', '■ ', '⬢ ']
# A status row carries the reply's mark, yet closes no item: the answer above it may still grow.
chrome = [
  '• (Working|Waiting|Starting|Booting)\b.* \(\d+[hms]', '• Queued follow-up inputs$',
  '• Messages to be submitted', '  ↳ ', '⚠ ', '  Worked for .* • \d', '─{8,}', '[▀▄]{8,}',
]
wraps_wide_anywhere = true
break_after = '-'
queued = '  ↳ '
prompt = '› '
placeholders = ['Ask Codex to do anything$']
pasted = ['\[Pasted Content \d+ chars\]']
`;
