/**
 * Finds secrets in prompts by a maintained library (decision 0012): its rules know the forms of
 * credentials, we know none. What cannot be checked counts as one: fails closed.
 */
import { lintSource } from "@secretlint/core";
import { creator } from "@secretlint/secretlint-rule-preset-recommend";

const RULES = [{
  id: "@secretlint/secretlint-rule-preset-recommend",
  rule: creator,
  options: {},
}];

/** True when `text` holds what looks like a credential, or could not be checked. */
export async function holdsSecret(text: string): Promise<boolean> {
  try {
    const { messages } = await lintSource({
      source: { filePath: "prompt.txt", content: text, contentType: "text", ext: ".txt" },
      options: { noPhysicFilePath: true, config: { rules: RULES } },
    });
    return messages.length > 0;
  } catch {
    return true;
  }
}
