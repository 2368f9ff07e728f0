/** Takes a CR within 120 ms of other input for a line break, and loses one Enter on top of that. Further options as in `fake_chat.ts`. */
import { FakeChat } from "./fake_chat.ts";
import { fakeOptions } from "./fake_terminal.ts";

await new FakeChat(fakeOptions([...Deno.args, "--deaf-ms=120", "--swallow-enter=1"])).run();
