/** Definitions as graphs. Each text is asked for once, and always gives the same object, so that it is laid out once. */
import { useEffect, useState } from "../vendor/preact.js";
import { api } from "./requests.js";

/** @typedef {import("../parts/graph-layout.js").DefinitionGraph} DefinitionGraph */
/** @typedef {{data: DefinitionGraph | null, error: any}} GraphAnswer */

const KEPT_MAX = 20;

/** @type {Map<string, Promise<DefinitionGraph>>} */
const kept = new Map();

/** The graph of a definition; throws ApiError, of status 400 for a text with errors. @param {string} definition @returns {Promise<DefinitionGraph>} */
export function graphOf(definition) {
  const found = kept.get(definition);
  if (found) return found;
  const asked = api("v1/definitions/graph", { method: "POST", text: definition, type: "text/plain" });
  kept.set(definition, asked);
  asked.catch(() => kept.delete(definition));
  for (const text of kept.keys()) {
    if (kept.size <= KEPT_MAX) break;
    kept.delete(text);
  }
  return asked;
}

/** The graph of a definition, null until it is there. @param {string | null | undefined} definition @returns {GraphAnswer} */
export function useGraph(definition) {
  const [answer, setAnswer] = useState(/** @type {GraphAnswer & {of: string | null}} */ ({ data: null, error: null, of: null }));
  useEffect(() => {
    if (definition === null || definition === undefined) return;
    let isGone = false;
    graphOf(definition).then(
      (data) => isGone || setAnswer({ data, error: null, of: definition }),
      (error) => isGone || setAnswer({ data: null, error, of: definition }),
    );
    return () => {
      isGone = true;
    };
  }, [definition]);
  return answer.of === definition ? answer : { data: null, error: null };
}
