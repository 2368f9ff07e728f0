/** Gemini CLI; measured with 0.61.0. */
export const GEMINI = String.raw`
name = "gemini"
match = ["gemini"]
# It was seen to live on after its terminal was closed.
outlives_terminal = true

[input]
paste = "bracketed"
# Queued texts are joined into one message: wait until it is ready.
queues = false

[status]
[status.ready]
titles = ['^◇ ']
[status.busy]
titles = ['^✦ ']
rows = ['\(esc to cancel, ']
[status.dialog]
titles = ['^✋ ']
rows = ['Allow execution of', 'Apply this change\?', '^[│ ]*● 1\. ']

[screen]
reply = '✦ '
indent = 2
echo = ' [>!] '
# Only the headline of a tool's box closes the item before: other boxes may be the composer's.
tool = ['│ [✓✕⊶⊷?] ']
chrome = ['[╭│╰]', '[─▀▄]{8,}', ' {20,}\? for shortcuts$', '[ℹ⚠✕✓] ', ' Press Ctrl\+O to expand']
prompt = ' > '
placeholders = ['Type your message or @path/to/file$']
pasted = ['\[Pasted Text: \d+ ']
`;
