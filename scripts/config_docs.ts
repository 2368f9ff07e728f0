/** docs/configuration.md, from the table of keys. */
import { defaultTexts, keysByTable } from "../lib/cli/config_text.ts";
import { format } from "./schema_text.ts";

const HEAD = `# Configuration

One TOML file, \`\${XDG_CONFIG_HOME:-~/.config}/tamq/config.toml\`, or the one that \`TAMQ_CONFIG\` names.
Without it the defaults below apply.

    tamq config init     # writes a file with every key as a comment; never overwrites one
    tamq config check    # names file, line, key, value and what is allowed; exit status 2
    tamq config show     # every setting in force and where it comes from
    tamq config path     # where the file is, or would be

What an option of a command says comes before the environment, the environment before the file, the
file before the defaults. An empty variable counts as unset. A running service keeps what it read at
its start: \`tamq stop\`, then \`tamq serve --detach\`. An unknown key, a wrong type or a value out of
range is an error of every command; only \`tamq stop\` and \`tamq ping\` go on then, with a warning, by
the environment and the defaults.

## One command, one repository

What holds for a window can be said for the command that runs in it, and for its repository; the
repository's word comes before the command's, and what \`tamq start\` is told before both. The rest of
\`[delivery]\` stays in force.

\`\`\`toml
[commands.claude]            # also npx claude
quiet_seconds = 1            # the operator's line rests so long before anything is typed
delivery = { ack_mode = "acknowledged" }

[repositories.production]
mode = "draft"               # messages are typed, Enter is yours
delivery = { max_attempts = 1 }
\`\`\`

\`tamq start --dry-run\` shows what follows from it. Every receipt carries the version of the
configuration that was in force, a hash of its values; \`tamq config check\` prints the present one.

## Acknowledged delivery

By default a message is done (\`injected\`) once it was written into the receiver's terminal. With

\`\`\`toml
[delivery]
ack_mode = "acknowledged"
ack_seconds = 600      # an agent may be busy for a while before it runs the command
\`\`\`

it is \`awaiting_ack\` then, and the delivered text ends with \`(tamq ack ID)\`. Whoever receives it runs
that command (\`tamq guide\` teaches agents to), and the message is \`acknowledged\`. When
\`ack_seconds\` pass without it, the same message is shown again, under the same id; after
\`max_attempts\` it is \`failed\` with the reason \`ack_timeout\`. A late \`tamq ack ID\` still counts, also
after that. It says that the text was taken on, not that its work was done.
`;

/** The page, as `deno fmt` has it. */
export async function configurationPage(): Promise<string> {
  const defaults = await defaultTexts();
  const parts = [HEAD];
  for (const [name, keys] of keysByTable()) {
    parts.push(name === "" ? "## Keys without a table" : `## \`[${name}]\``);
    const bare = (key: string) => key.slice(name === "" ? 0 : name.length + 1);
    const cell = (text: string) => text.replaceAll("|", "\\|");
    parts.push([
      "| key | type | allowed | default | meaning |",
      "| --- | --- | --- | --- | --- |",
      ...keys.map((one) => {
        const other = one.without ?? `\`${defaults.get(one.key)}\``;
        const env = one.env === undefined ? "" : `; \`${one.env}\` comes before it`;
        return `| \`${bare(one.key)}\` | ${one.type} | ${cell(one.allowed)} | ${other} | ` +
          `${cell(one.brief)}${env} |`;
      }),
    ].join("\n"));
    const example = keys.map((one) => `${bare(one.key)} = ${one.example}`).join("\n");
    parts.push(`\`\`\`toml\n${name === "" ? "" : `[${name}]\n`}${example}\n\`\`\``);
  }
  return await format(parts.join("\n\n"));
}
