// Reads a JSON list of {name, latex} on stdin, renders each string with KaTeX in strict mode and
// prints a JSON list of {name, message} for those that fail.
import { readFileSync } from "node:fs";
import katex from "katex";

const failures = [];
for (const { name, latex } of JSON.parse(readFileSync(0, "utf8"))) {
  try {
    katex.renderToString(latex, {
      displayMode: true,
      strict: "error",
      throwOnError: true,
      trust: false,
      // The limit guards a page against hostile input; each \, or \operatorname of ours counts.
      maxExpand: Infinity,
    });
  } catch (error) {
    failures.push({ name, message: error.message });
  }
}
process.stdout.write(JSON.stringify(failures));
