/** Never echoes: neither composer nor submitted text is shown. Further options as in `fake_chat.ts`. */
import { FakeChat } from "./fake_chat.ts";
import { fakeOptions } from "./fake_terminal.ts";

await new FakeChat(fakeOptions([...Deno.args, "--no-echo"])).run();
