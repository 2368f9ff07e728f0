/** A slow starter: all input of its first five seconds is discarded. Further options as in `fake_chat.ts`. */
import { FakeChat } from "./fake_chat.ts";
import { fakeOptions } from "./fake_terminal.ts";

await new FakeChat(fakeOptions([...Deno.args, "--start-ms=5000"])).run();
