/**
 * The delivery streams of windows: the attach handshake, then frames both ways until the connection
 * ends (T-25, E-02, E-03, E-04). The queue decides what is delivered; this file proves who attaches.
 */
import type { Attached, Attachments } from "./attachments.ts";
import { type Clock, rfc3339 } from "./base/clock.ts";
import { errorText, TamqError } from "./base/errors.ts";
import type { Log } from "./base/log.ts";
import type { ProcessIdentity } from "./base/proc.ts";
import { endpointId } from "./model/endpoint.ts";
import { RESERVED_SENDERS } from "./model/envelope.ts";
import { nearest } from "./model/nearest.ts";
import type { Delivery, DeliveryPort, Peer, Processes, Registry, Window } from "./model/ports.ts";
import { parseBrokerFrame } from "./protocol/frame.ts";
import { CAPABILITIES, PROTOCOL } from "./protocol/handshake.ts";
import type { RequestOf, ResponseOf } from "./protocol/operations.ts";
import type { ServiceFrame, WireEndpoint } from "./protocol/schema.ts";
import type { EndpointFacts, Queue } from "./queue.ts";
import type { Channel, Reply } from "./socket.ts";
import { type LiveWindow, WindowUpgrades } from "./window_upgrades.ts";

export interface WindowStreamsOptions {
  readonly queue: Queue;
  readonly attachments: Attachments;
  readonly registry: Registry;
  readonly processes: Processes;
  readonly clock: Clock;
  readonly log: Log;
  /** Whether that process is a broker, attached or not; by its argument vector. */
  readonly isBroker: (pid: number) => boolean;
  readonly serviceId: string;
  /** What completes a message in a window of that repository with that command. */
  readonly ackMode: (repo: string, command: readonly string[]) => "injected" | "acknowledged";
  /** A window's connection ended: what its broker had spooled may need a new owner (B-13). */
  readonly onEnded?: (window: Window) => void;
  /** A window came or went. */
  readonly onChanged?: () => void;
  /** A window's gate opened, closed, or gives another reason. */
  readonly onGate?: (window: Window, gate: Attached["gate"]) => void;
}

/** What an attach request is answered for; see `Call` of the handlers. */
interface AttachCall {
  readonly peer: Peer;
  readonly protocol: string;
  readonly newerMinor: boolean;
}

export class WindowStreams {
  readonly #options: WindowStreamsOptions;
  readonly #facts = new Map<number, EndpointFacts>();

  readonly upgrades: WindowUpgrades;

  constructor(options: WindowStreamsOptions) {
    this.#options = options;
    this.upgrades = new WindowUpgrades(options);
  }

  /** Throws the reasons that the operation table names for `attach`. */
  async attach(fields: RequestOf<"attach">, call: AttachCall): Promise<Reply> {
    const { queue, clock, serviceId, ackMode, log } = this.#options;
    const repo = fields.repos[0]!;
    this.#checkRepository(repo, fields.path);
    const server = this.#tmuxServer(fields.tmux.server_pid);
    const broker = this.#broker(call.peer, fields.worker_pid, server);
    const facts: EndpointFacts = {
      endpointId: endpointId(server.pid),
      generation: server.start,
      session: fields.tmux.session,
      protocol: call.newerMinor ? PROTOCOL : call.protocol,
      capabilities: CAPABILITIES.filter((name) => fields.capabilities.includes(name)),
    };
    const endpointRef = await queue.registerEndpoint(facts);
    const window: Window = {
      endpointRef,
      endpointId: facts.endpointId,
      repo,
      path: fields.path,
      command: fields.command,
      mode: fields.mode,
      broker,
      workerPid: fields.worker_pid,
      instance: fields.instance,
      windowId: fields.tmux.window_id,
      session: fields.tmux.session_id ?? fields.tmux.session,
      attachedAt: clock.now(),
      ...(fields.recording === undefined ? {} : { recording: fields.recording }),
    };
    const port = new StreamPort();
    const attached = await queue.attach(window, port, {
      outstanding: fields.outstanding,
      inProgress: fields.in_progress,
    });
    this.#facts.set(endpointRef, facts);
    this.#options.onChanged?.();
    log.info("window.attached", { repo, endpoint: facts.endpointId, broker: broker.pid });
    const result: ResponseOf<"attach"> = {
      endpoint_id: facts.endpointId,
      service_id: serviceId,
      protocol: facts.protocol,
      capabilities: [...facts.capabilities],
      ack_mode: ackMode(repo, fields.command),
    };
    const { program } = fields;
    const run = (channel: Channel) => {
      const live = { window, program, send: (frame: ServiceFrame) => channel.send(frame) };
      return this.#run(attached, port, channel, call.newerMinor, live);
    };
    return { result, stream: run };
  }

  async #run(
    attached: Attached,
    port: StreamPort,
    channel: Channel,
    newerMinor: boolean,
    live: LiveWindow,
  ): Promise<void> {
    const { queue, log, onEnded, onChanged } = this.#options;
    const { window } = attached;
    const leave = async (reason: string) => {
      const frame: ServiceFrame = { type: "closing", reason };
      await channel.send(frame);
      channel.close();
    };
    const stop = () => void leave("shutting_down");
    if (channel.stopping.aborted) stop();
    channel.stopping.addEventListener("abort", stop);
    port.open(channel);
    this.upgrades.attached(live);
    try {
      for await (const json of channel.frames()) {
        const frame = parseBrokerFrame(json, newerMinor);
        if (frame === undefined) continue;
        if (frame.type === "gate") this.#setGate(attached, frame.open, frame.reason);
        else if (frame.type === "recording") attached.recording = frame.on;
        else if (frame.type === "not_upgraded") this.upgrades.refused(window, frame.reason);
        else {
          const { type: _, ...settlement } = frame;
          port.hold();
          const settled = await queue.settle(attached, settlement);
          const answer: ServiceFrame = {
            type: "settled",
            lease_token: frame.lease_token,
            ...settled,
          };
          const sent = channel.send(answer);
          port.release();
          // Awaited: a broker that reports without reading gets no further than one report.
          await sent;
        }
      }
    } catch (error) {
      const known = error instanceof TamqError;
      log.warn("window.stream_failed", { repo: window.repo, reason: errorText(error) });
      await leave(known ? error.reason : "internal_error");
    } finally {
      channel.stopping.removeEventListener("abort", stop);
      channel.close();
      this.upgrades.detached(live);
      await queue.detach(attached);
      this.#forget(window.endpointRef);
      log.info("window.detached", { repo: window.repo, endpoint: window.endpointId });
      onEnded?.(window);
      onChanged?.();
    }
  }

  #setGate(attached: Attached, open: boolean, reason: string | undefined): void {
    const before = attached.gate;
    this.#options.queue.setGate(attached, open, reason);
    const { gate } = attached;
    const changed = before.open !== gate.open || before.reason !== gate.reason;
    if (attached.live && changed) this.#options.onGate?.(attached.window, gate);
  }

  /** Live endpoints with their windows, as the `endpoints` operation tells them. */
  endpoints(): WireEndpoint[] {
    const found = new Map<number, WireEndpoint>();
    for (const { window, gate, recording } of this.#options.attachments.all()) {
      let endpoint = found.get(window.endpointRef);
      if (endpoint === undefined) {
        const facts = this.#facts.get(window.endpointRef);
        endpoint = {
          endpoint_id: window.endpointId,
          tmux_session: facts?.session ?? "",
          protocol: facts?.protocol ?? PROTOCOL,
          capabilities: [...facts?.capabilities ?? []],
          repos: [],
          attachments: [],
        };
        found.set(window.endpointRef, endpoint);
      }
      endpoint.repos.push(window.repo);
      endpoint.attachments.push({
        repo: window.repo,
        path: window.path,
        command: [...window.command],
        mode: window.mode,
        gate: { open: gate.open, reason: gate.reason },
        ...(recording ? { recording } : {}),
        broker_pid: window.broker.pid,
        window_id: window.windowId,
        attached_at: rfc3339(window.attachedAt),
      });
    }
    return [...found.values()];
  }

  #forget(endpointRef: number): void {
    const used = this.#options.attachments.all().some((a) => a.window.endpointRef === endpointRef);
    if (!used) this.#facts.delete(endpointRef);
  }

  /** The registry as it is now has that exact name at that very path (E-04). */
  #checkRepository(name: string, path: string): void {
    const { registry } = this.#options;
    if (RESERVED_SENDERS.includes(name)) {
      throw new TamqError("FAILED_PRECONDITION", "reserved_name", `"${name}" is a reserved name`, {
        hint: `give the repository another name: gita rename ${name} NEW-NAME`,
      });
    }
    const found = registry.find(name);
    if (found === "unknown") {
      const like = nearest(name, registry.names());
      throw new TamqError(
        "NOT_FOUND",
        "unknown_repository",
        `no repository "${name}" is registered in ${registry.source}`,
        {
          hint: like.length > 0 ? `did you mean ${like.join(", ")}?` : "register it: gita add PATH",
        },
      );
    }
    if (found === "ambiguous") {
      throw new TamqError(
        "FAILED_PRECONDITION",
        "ambiguous_repository",
        `two repositories are registered as "${name}" in ${registry.source}`,
        { hint: "give each a name of its own: gita rename" },
      );
    }
    if (found.path !== path && realPath(found.path) !== realPath(path)) {
      throw new TamqError(
        "FAILED_PRECONDITION",
        "path_mismatch",
        `"${name}" is registered at ${found.path}, but the window runs in ${path}`,
        { hint: "open the window again, so that it uses the registered path" },
      );
    }
  }

  #tmuxServer(pid: number): ProcessIdentity {
    const server = this.#options.processes.identify(pid);
    if (server !== undefined) return server;
    throw new TamqError(
      "FAILED_PRECONDITION",
      "endpoint_dead",
      `the tmux server ${pid} does not live`,
      { hint: "open the windows again: tamq start" },
    );
  }

  /**
   * The peer itself is the broker: the worker it names is its own child, the tmux server it names
   * started it, and it is no program inside another window.
   */
  #broker(peer: Peer, workerPid: number, server: ProcessIdentity): ProcessIdentity {
    const { processes, attachments, isBroker } = this.#options;
    const refuse = (message: string, hint: string): never => {
      throw new TamqError("PERMISSION_DENIED", "peer_mismatch", message, { hint });
    };
    const broker = processes.identify(peer.pid);
    if (broker === undefined || processes.ancestry(workerPid)[1] !== peer.pid) {
      return refuse(
        `process ${workerPid} is no child of the process that attaches (${peer.pid})`,
        "only the broker that started a worker can attach its window",
      );
    }
    const line = peer.ancestry?.() ?? processes.ancestry(peer.pid);
    if (!line.includes(server.pid)) {
      return refuse(
        `the process that attaches (${peer.pid}) was not started by the tmux server ${server.pid}`,
        "open windows with: tamq start",
      );
    }
    const above = line.slice(1);
    if (attachments.ownerOf(above) !== undefined || above.some(isBroker)) {
      return refuse(
        `the process that attaches (${peer.pid}) runs inside another window of tamq`,
        "open windows from a terminal or a tmux server outside of it",
      );
    }
    return broker;
  }
}

function realPath(path: string): string {
  try {
    return Deno.realPathSync(path);
  } catch {
    return path;
  }
}

/**
 * Where the queue puts deliveries for one window. They are kept until the answer to `attach` is out,
 * and while a report is being settled: its answer comes before the delivery that it makes room for.
 */
class StreamPort implements DeliveryPort {
  #channel: Channel | undefined;
  #held = true;
  #early: Delivery[] = [];

  deliver(delivery: Delivery): void {
    if (this.#held || this.#channel === undefined) {
      this.#early.push(delivery);
      return;
    }
    const frame: ServiceFrame = {
      type: "deliver",
      message_id: delivery.messageId,
      attempt: delivery.attempt,
      lease_token: delivery.leaseToken,
      envelope: { ...delivery.envelope },
    };
    void this.#channel.send(frame);
  }

  open(channel: Channel): void {
    this.#channel = channel;
    this.release();
  }

  hold(): void {
    this.#held = true;
  }

  release(): void {
    this.#held = false;
    for (const delivery of this.#early.splice(0)) this.deliver(delivery);
  }
}
