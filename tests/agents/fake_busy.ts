/** A busy agent: at work for five minutes from its start, redrawing a spinner all the while. Further options as in `fake_chat.ts`. */
import { FakeChat } from "./fake_chat.ts";
import { fakeOptions } from "./fake_terminal.ts";

await new FakeChat(fakeOptions([...Deno.args, "--spinner-ms=80", "--first=work<300000> say<done>"]))
  .run();
