/** opencode; measured with 1.18.33. It has only an alternate screen. */
export const OPENCODE = String.raw`
name = "opencode"
match = ["opencode"]

[launch]
not_with = ["run", "serve", "web", "auth", "models", "upgrade", "export", "import", "github",
  "mcp", "agent", "stats", "acp", "session", "--help", "-h", "--version", "-v"]

[input]
paste = "bracketed"
queues = true
# All input of its first three seconds or more is lost.
startup_quiet_ms = 4000

[status]
[status.busy]
rows = ['esc interrupt']
[status.dialog]
rows = ['△ Permission required']

[screen]
# Its words carry no mark, five blanks only; each row of a user's text is framed.
indent = 5
echo = ' +┃ ?'
echo_every_row = true
tool = [' *[│└┌] ']
chrome = [' +▣ ', ' *[─▀▄╹]{8,}', ' +┃ +(Build|Plan) · ']
wrap_margin = 2
break_after = '-/'
prompt = ' +┃ '
placeholders = ['Ask anything']
pasted = ['\[Pasted ~?\d+ lines']
`;
