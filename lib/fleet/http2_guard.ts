/**
 * Keeps the runtime alive when a peer ends its session while calls are open.
 *
 * Deno 2.9.6 answers a GOAWAY frame by `session.close()` in the middle of reading it. With streams
 * open, that ends streams which the reader still holds: the process aborts ("double free", a failed
 * assertion in nghttp2). Any peer with a certificate could end a dispatcher so. Closing one turn of
 * the event loop later, when the reader is done, is safe; decision record 0015 has the counts.
 */
import process from "node:process";
import { systemClock } from "../base/clock.ts";

interface Session {
  close(callback?: () => void): void;
  readonly destroyed: boolean;
}
interface Emitter {
  on(event: "session", listener: (session: Session) => void): unknown;
}
type Make = (...args: unknown[]) => unknown;

let guarded = false;

/** Guards every HTTP/2 session that this process makes or accepts from now on. */
export function guardHttp2(): void {
  if (guarded) return;
  guarded = true;
  // The module object itself: grpc-js looks its functions up in it for each connection.
  const http2 = process.getBuiltinModule("node:http2") as unknown as Record<string, Make>;
  const { createSecureServer, connect } = http2;
  http2.createSecureServer = (...args) => {
    const server = createSecureServer!(...args) as Emitter;
    server.on("session", defer);
    return server;
  };
  http2.connect = (...args) => {
    const session = connect!(...args) as Session;
    defer(session);
    return session;
  };
}

function defer(session: Session): void {
  const close = session.close;
  session.close = (callback) => {
    systemClock.after(0, () => {
      if (session.destroyed) callback?.();
      else close.call(session, callback);
    });
  };
}
