/** Topics of `tamq help` beside the commands. */
export const HELP_TOPICS: readonly string[] = ["exit-codes", "protocol"];
