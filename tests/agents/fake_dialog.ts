/** Opens a permission dialog at once, in which Enter means yes. Further options as in `fake_chat.ts`. */
import { FakeChat } from "./fake_chat.ts";
import { fakeOptions } from "./fake_terminal.ts";

await new FakeChat(fakeOptions([...Deno.args, "--first=ask<touch pwn>"])).run();
