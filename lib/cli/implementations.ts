/**
 * Every module that is imported late, named literally: for the single-file forms of the program, and
 * for whoever reads the import graph. Nothing of it is loaded in a checkout; there only its type is
 * used.
 */
export const IMPLEMENTATIONS = {
  "cli/application": () => import("./application.ts"),
  "cli/likely": () => import("./likely.ts"),
  "cli/overview": () => import("./overview.ts"),
  "cli/completion": () => import("./completion.ts"),
  "cli/verbs/ack": () => import("./verbs/ack.ts"),
  "cli/verbs/broker": () => import("./verbs/broker.ts"),
  "cli/verbs/cancel": () => import("./verbs/cancel.ts"),
  "cli/verbs/completion": () => import("./verbs/completion.ts"),
  "cli/verbs/db_version": () => import("./verbs/db_version.ts"),
  "cli/verbs/endpoints": () => import("./verbs/endpoints.ts"),
  "cli/verbs/export": () => import("./verbs/export.ts"),
  "cli/verbs/guide": () => import("./verbs/guide.ts"),
  "cli/verbs/help": () => import("./verbs/help.ts"),
  "cli/verbs/history": () => import("./verbs/history.ts"),
  "cli/verbs/message": () => import("./verbs/message.ts"),
  "cli/verbs/ping": () => import("./verbs/ping.ts"),
  "cli/verbs/purge": () => import("./verbs/purge.ts"),
  "cli/verbs/replay": () => import("./verbs/replay.ts"),
  "cli/verbs/retry": () => import("./verbs/retry.ts"),
  "cli/verbs/send": () => import("./verbs/send.ts"),
  "cli/verbs/serve": () => import("./verbs/serve.ts"),
  "cli/verbs/start": () => import("./verbs/start.ts"),
  "cli/verbs/status": () => import("./verbs/status.ts"),
  "cli/verbs/stop": () => import("./verbs/stop.ts"),
  "cli/verbs/who": () => import("./verbs/who.ts"),
  "cli/version": () => import("./version.ts"),
  "config_schema": () => import("../config_schema.ts"),
  "gita": () => import("../gita.ts"),
  "purge_offline": () => import("../purge_offline.ts"),
  "store/export": () => import("../store/export.ts"),
  "store/history": () => import("../store/history.ts"),
  "store/store": () => import("../store/store.ts"),
} as const;
