/** The face of `ipc/`: what a service needs to listen, be alone, and stop in order. */
export { bindSocket, type Bound } from "./ipc/bind.ts";
export { Channel } from "./ipc/channel.ts";
export type { Json } from "./ipc/frame.ts";
export { LIMITS, type Limits } from "./ipc/limits.ts";
export { type Handle, type Reply, shuttingDown, SocketServer } from "./ipc/listener.ts";
export { onStopSignals, runInOrder, type Step } from "./ipc/lifecycle.ts";
export {
  type Holder,
  liveHolder,
  lockPath,
  readHolder,
  type ServiceLock,
  serviceRunning,
  tryLockFile,
  tryServiceLock,
} from "./ipc/lock.ts";
export { PEER_CHECK, PeerFinder } from "./ipc/peer.ts";
