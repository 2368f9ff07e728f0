/** Commands of the fleet: dispatcher, agents, their certificates, and what an operator asks. */
import { command, family } from "./command.ts";
import { late } from "./late.ts";
import { count, flag, json, text } from "./parameters.ts";
import type { CaFlags, IssueFlags, RevokeFlags } from "./verbs/fleet_ca.ts";
import type {
  ApproveFlags,
  ExecutionsFlags,
  OperatorFlags,
  RunFlags,
} from "./verbs/fleet_operator.ts";
import type { AgentFlags, DispatcherFlags } from "./verbs/fleet_service.ts";

const service = () => late("cli/verbs/fleet_service");
const ca = () => late("cli/verbs/fleet_ca");
const operator = () => late("cli/verbs/fleet_operator");

const tls = text("DIR", "Directory with cert.pem, key.pem, ca.pem and crl.pem");
const listen = text("HOST:PORT", "Address to listen on");
const dispatcherAddress = text("HOST:PORT", "Where the dispatcher listens; 127.0.0.1:7443");
const logging = {
  quiet: flag("Log warnings and errors only"),
  verbose: flag("Log everything"),
  json: flag("Log JSON, one object a line"),
};
const one = (placeholder: string, brief: string) => ({ parse: String, placeholder, brief });
const tuple = <const P extends readonly ReturnType<typeof one>[]>(...parameters: P) =>
  ({ kind: "tuple", parameters }) as const;
const agentName = one("AGENT", "Name of the agent, as its certificate has it");
const asOperator = { dispatcher: dispatcherAddress, tls, json };

const dispatcher = command<DispatcherFlags, []>({
  brief: "Run the dispatcher of a fleet in the foreground",
  details: `Gives executions to the agents of several hosts: each at most once. Agents and operators
come with certificates of the fleet's authority (tamq fleet ca). State is kept in
fleet/dispatcher below the state directory; see docs/fleet.md.`,
  usage: ["[--listen HOST:PORT] [--tls DIR] [--quiet|--verbose] [--json]"],
  examples: [
    { run: "tamq fleet dispatcher --listen 0.0.0.0:7443 --tls d1", does: "for other hosts" },
  ],
  parameters: { flags: { listen, tls, ...logging } },
  load: async () => ({ default: (await service()).dispatcher }),
});

const agent = command<AgentFlags, []>({
  brief: "Run this host's agent in the foreground: it wakes workers through tamq serve",
  usage: ["[--dispatcher HOST:PORT] [--listen HOST:PORT] [--cell CELL] [--tls DIR] [--json]"],
  examples: [
    {
      run: "tamq fleet agent --dispatcher hub.example:7443 --listen 0.0.0.0:7444 --tls a1",
      does: "under the name in its certificate, once it is approved",
    },
  ],
  parameters: {
    flags: {
      dispatcher: dispatcherAddress,
      listen,
      cell: text("CELL", "The cell that it is approved for; default"),
      tls,
      ...logging,
    },
  },
  load: async () => ({ default: (await service()).agent }),
});

const dir = text("DIR", "Directory of the authority");
const init = command<CaFlags, [string]>({
  brief: "Make the certificate authority of a new fleet",
  usage: ["[--dir DIR] [--json] FLEET"],
  examples: [{ run: "tamq fleet ca init lab", does: "its key stays in that directory, 0600" }],
  parameters: {
    flags: { dir, json },
    positional: tuple(one("FLEET", "Name of the fleet")),
  },
  load: async () => ({ default: (await ca()).init }),
});

const issue = command<IssueFlags, [string, string]>({
  brief: "Issue a certificate: a directory to copy to whoever it names",
  usage: ["[--out DIR] [--days N] [--dir DIR] [--json] agent|dispatcher|operator NAME"],
  examples: [
    { run: "tamq fleet ca issue agent build-7 --out a1", does: "for the host build-7" },
    {
      run: "tamq fleet ca issue agent build-7 --out a1",
      does: "again: copied over the old one, it is used without a restart",
    },
  ],
  parameters: {
    flags: {
      out: text("DIR", "Where the files go; ROLE-NAME here"),
      days: {
        kind: "parsed",
        parse: count(1, 3650),
        optional: true,
        placeholder: "N",
        brief: "Days until it expires; 90",
      },
      dir,
      json,
    },
    positional: tuple(
      one("ROLE", "agent, dispatcher or operator"),
      one("NAME", "Name in the fleet: lower-case letters, digits, '.', '_' and '-'"),
    ),
  },
  load: async () => ({ default: (await ca()).issue }),
});

const revoke = command<RevokeFlags, [string, string]>({
  brief: "Revoke certificates; copy crl.pem to every fleet process afterwards",
  usage: ["[--serial HEX] [--dir DIR] [--json] agent|dispatcher|operator NAME"],
  examples: [
    { run: "tamq fleet ca revoke agent build-7", does: "every certificate of that name" },
  ],
  parameters: {
    flags: { serial: text("HEX", "This certificate alone"), dir, json },
    positional: tuple(one("ROLE", "agent, dispatcher or operator"), one("NAME", "Its name")),
  },
  load: async () => ({ default: (await ca()).revoke }),
});

const status = command<OperatorFlags, []>({
  brief: "Show a fleet: its dispatcher, its agents, its executions by state",
  usage: ["[--dispatcher HOST:PORT] [--tls DIR] [--json]"],
  examples: [{
    run: "tamq fleet status",
    does: "status 0 when every agent has joined, 1 when not",
  }],
  parameters: { flags: asOperator },
  load: async () => ({ default: (await operator()).status }),
});

const agents = command<OperatorFlags, []>({
  brief: "List the agents of a fleet",
  usage: ["[--dispatcher HOST:PORT] [--tls DIR] [--json]"],
  examples: [{ run: "tamq fleet agents", does: "cell, address, session, door" }],
  parameters: { flags: asOperator },
  load: async () => ({ default: (await operator()).agents }),
});

const approve = command<ApproveFlags, [string]>({
  brief: "Approve an agent: its name, its cell, and where it is reached",
  usage: ["--address HOST:PORT [--cell CELL] [--json] AGENT"],
  examples: [
    { run: "tamq fleet approve build-7 --address build-7.example:7444", does: "it may join" },
  ],
  parameters: {
    flags: {
      address: { ...text("HOST:PORT", "Where the dispatcher reaches it"), optional: false },
      cell: text("CELL", "Its cell; default"),
      ...asOperator,
    },
    positional: tuple(agentName),
  },
  load: async () => ({ default: (await operator()).approve }),
});

const run = command<RunFlags, [string, string, string]>({
  brief: "Have an agent wake the worker of a repository on its host, once",
  usage: ["[--id ID] [--task N] [--tenant N] [--endpoint ID] [--json] AGENT REPO PROMPT"],
  examples: [
    { run: "tamq fleet run build-7 api 'the nightly build is red'", does: "prints the execution" },
  ],
  parameters: {
    flags: {
      id: text("ID", "Id of the execution: the same id again is the same execution"),
      task: number("Number of its task"),
      tenant: number("Number of its tenant"),
      endpoint: text("ID", "The terminal, where several have the repository open"),
      ...asOperator,
    },
    positional: tuple(
      agentName,
      one("REPO", "Registered name of the repository on that host"),
      one("PROMPT", "What its worker is told, up to 8 KiB"),
    ),
  },
  load: async () => ({ default: (await operator()).run }),
});

function number(brief: string) {
  return {
    kind: "parsed",
    parse: count(1, 999_999_999),
    optional: true,
    placeholder: "N",
    brief,
  } as const;
}

const executions = command<ExecutionsFlags, []>({
  brief: "List executions, newest first",
  usage: ["[--agent AGENT] [-n N] [--json]"],
  examples: [{ run: "tamq fleet executions --agent build-7", does: "of one host" }],
  parameters: {
    flags: {
      agent: text("AGENT", "Of this agent"),
      limit: number("At most N; 50"),
      ...asOperator,
    },
    aliases: { n: "limit" },
  },
  load: async () => ({ default: (await operator()).executions }),
});

function onExecution(
  name: "explain" | "release",
  brief: string,
  does: string,
) {
  return command<OperatorFlags, [string]>({
    brief,
    usage: ["[--json] EXECUTION"],
    examples: [{ run: `tamq fleet ${name} 06zz…`, does }],
    parameters: {
      flags: asOperator,
      positional: tuple(one("EXECUTION", "Id of the execution")),
    },
    load: async () => ({ default: (await operator())[name] }),
  });
}

function door(name: "drain" | "resume", brief: string, does: string) {
  return command<OperatorFlags, [string]>({
    brief,
    usage: ["[--json] AGENT"],
    examples: [{ run: `tamq fleet ${name} build-7`, does }],
    parameters: { flags: asOperator, positional: tuple(agentName) },
    load: async () => ({ default: (await operator())[name] }),
  });
}

export const fleet = family("Wake workers on other hosts: dispatcher, agents, certificates", {
  dispatcher,
  agent,
  ca: family("The fleet's certificate authority", { init, issue, revoke }),
  status,
  agents,
  approve,
  run,
  executions,
  explain: onExecution("explain", "Say what became of an execution, and why", "each step"),
  release: onExecution("release", "Give up an execution that has no permit yet", "nobody is woken"),
  drain: door("drain", "Let an agent take no new executions", "says how many still run"),
  resume: door("resume", "Let a drained agent take executions again", "what waited goes on"),
});
