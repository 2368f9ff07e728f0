/**
 * What holds in a window, by the command that runs in it and by its repository, as the configuration
 * file writes it (C-02, C-03). The defaults give way to the command's rule, that to the repository's,
 * and that to what `tamq start` is told.
 */
import { commandName } from "./command_name.ts";
import type { Mode } from "./endpoint.ts";
import type { DeliveryPolicy } from "./retry_schedule.ts";

export interface DeliveryRule {
  readonly ack_mode?: DeliveryPolicy["ackMode"];
  readonly max_attempts?: number;
  readonly backoff_seconds?: readonly number[];
  readonly lease_seconds?: number;
  readonly ack_seconds?: number;
  readonly ready_seconds?: number;
}

export interface WindowRule {
  readonly mode?: Mode;
  /** Name of an agent profile. */
  readonly profile?: string;
  /** How long the operator's line must rest before something is typed; instead of the profile's. */
  readonly quiet_seconds?: number;
  readonly delivery?: DeliveryRule;
}

export interface WindowRules {
  /** By the name that profiles match for a command, e.g. `claude`. */
  readonly commands: Readonly<Record<string, WindowRule>>;
  readonly repositories: Readonly<Record<string, WindowRule & { readonly observe?: "on" | "off" }>>;
}

/** The rule for `repo` with `command` in its window; of either alone where the other is not known. */
export function windowRule(
  rules: WindowRules,
  repo: string | undefined,
  command: readonly string[] = [],
): WindowRule {
  const own = repo !== undefined && Object.hasOwn(rules.repositories, repo)
    ? rules.repositories[repo]!
    : {};
  const name = commandName(command);
  const general = Object.hasOwn(rules.commands, name) ? rules.commands[name]! : {};
  return { ...general, ...own, delivery: { ...general.delivery, ...own.delivery } };
}

/** `base` with what `rule` says otherwise. */
export function deliveryPolicy(base: DeliveryPolicy, rule: DeliveryRule = {}): DeliveryPolicy {
  return Object.freeze({
    ackMode: rule.ack_mode ?? base.ackMode,
    maxAttempts: rule.max_attempts ?? base.maxAttempts,
    backoffSeconds: rule.backoff_seconds ?? base.backoffSeconds,
    leaseSeconds: rule.lease_seconds ?? base.leaseSeconds,
    ackSeconds: rule.ack_seconds ?? base.ackSeconds,
    readySeconds: rule.ready_seconds ?? base.readySeconds,
  });
}
