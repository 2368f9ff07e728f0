/** What the fleet keeps, by kind. Plain data, the same in every store. */
import type { JsonObject } from "@bufbuild/protobuf";

export interface EpochRecord {
  readonly epoch: string;
  /** The instance that is active. */
  readonly holder: string;
  readonly since: number;
}

export type Admission = "open" | "draining" | "closed";

export interface AgentRecord {
  readonly cellId: string;
  /** HOST:PORT as the operator approved it, not as anybody reports it (G-16). */
  readonly address: string;
  readonly bootId?: string;
  readonly generation: number;
  /** The epoch that the session was opened under. */
  readonly epoch?: string;
  readonly admission: Admission;
  readonly admissionGeneration: number;
  /** A barrier that was decided and may not have arrived. */
  readonly barrier?: { readonly id: string; readonly expected: number; readonly state: Admission };
  readonly unreachable: string;
}

export interface BootRecord {
  readonly fenced: boolean;
}

export interface OperationRecord {
  readonly method: string;
  readonly digest: string;
  /** The response, in the binary form of its message, base64. */
  readonly response: string;
  readonly at: number;
}

export type ExecutionState =
  | "reserved"
  | "permitted"
  | "unknown" // sent or about to be; evidence is missing
  | "accepted"
  | "applied"
  | "failed"
  | "refused"
  | "released";

export interface Step {
  readonly at: number;
  readonly what: string;
  readonly why: string;
}

export interface ExecutionRecord {
  readonly binding: JsonObject;
  readonly prompt: string;
  readonly state: ExecutionState;
  readonly reason: string;
  readonly reservationId: string;
  readonly permitId: string;
  readonly receipt?: JsonObject;
  readonly steps: readonly Step[];
}

export interface ReservationRecord {
  readonly executionId: string;
  readonly agentId: string;
  readonly state: "held" | "released" | "fenced";
  readonly revision: number;
  readonly fencingToken: number;
  readonly permitId: string;
}

export interface PermitRecord {
  readonly permit: JsonObject;
  readonly executionId: string;
}

export interface DecisionRecord {
  readonly decision: "issued" | "refused";
  readonly operationId: string;
  readonly deadline: number;
  readonly digest: string;
}

export interface FactRecord {
  readonly contentSha256: string;
  readonly kind: string;
  readonly agentId: string;
  readonly executionId: string;
  /** Base64. */
  readonly content: string;
  readonly receiptId: string;
  readonly at: number;
  readonly queuedAt?: number;
}

export interface UploadRecord {
  readonly agentId: string;
  readonly executionId: string;
  readonly sha256: string;
  readonly sizeBytes: number;
  readonly contentType: string;
  readonly factId: string;
}

/** What an agent knows of itself. */
export interface SelfRecord {
  readonly epoch: string;
  readonly cellId: string;
  readonly bootId: string;
  readonly generation: number;
  readonly admission: Admission;
  readonly admissionGeneration: number;
}

export interface BarrierRecord {
  readonly digest: string;
  readonly state: Admission;
  /** What the generation became. */
  readonly generation: number;
}

export type RunResult = "unknown" | "accepted" | "applied" | "failed";

/** An execution as its agent knows it. */
export interface RunRecord {
  readonly path: "permit" | "authorized";
  /** Permit id, or the operation id of an authorized one. */
  readonly authority: string;
  readonly digest: string;
  readonly tenantId: string;
  readonly taskId: string;
  readonly result: RunResult;
  readonly messageId: string;
  readonly messageState: string;
  readonly taskRevision: number;
  readonly taskState: "running" | "paused" | "stopped";
  readonly at: number;
}

export interface StopRecord {
  readonly deliveries: number;
  readonly at: number;
}

export interface NoteRecord {
  readonly kind: string;
  readonly executionId: string;
  readonly contentSha256: string;
  readonly content: string;
}

export interface CounterRecord {
  readonly value: number;
}

export interface Records {
  epoch: EpochRecord;
  agent: AgentRecord;
  boot: BootRecord;
  operation: OperationRecord;
  execution: ExecutionRecord;
  reservation: ReservationRecord;
  permit: PermitRecord;
  decision: DecisionRecord;
  fact: FactRecord;
  upload: UploadRecord;
  self: SelfRecord;
  barrier: BarrierRecord;
  run: RunRecord;
  stop: StopRecord;
  note: NoteRecord;
  counter: CounterRecord;
}

export const KINDS = [
  "epoch",
  "agent",
  "boot",
  "operation",
  "execution",
  "reservation",
  "permit",
  "decision",
  "fact",
  "upload",
  "self",
  "barrier",
  "run",
  "stop",
  "note",
  "counter",
] as const satisfies readonly (keyof Records)[];
