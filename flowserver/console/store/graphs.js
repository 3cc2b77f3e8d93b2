/** Definitions as graphs. Each text is asked for once, and always gives the same object, so that it is laid out once. */
import { useEffect, useState } from "../vendor/preact.js";
import { mayRead } from "./needs.js";
import { api } from "./requests.js";
import { Rest } from "./rest.js";

/** @typedef {import("../parts/graph-layout.js").DefinitionGraph} DefinitionGraph */
/** @typedef {{data: DefinitionGraph | null, error: any}} GraphAnswer */

const KEPT_MAX = 20;

/** @type {Map<string, Promise<DefinitionGraph>>} */
const kept = new Map();

/** The graph of a definition; throws ApiError, of status 400 for a text with errors. @param {string} definition @returns {Promise<DefinitionGraph>} */
export async function graphOf(definition) {
  if (!mayRead("v1/definitions/graph")) throw new Error("A graph needs a key with the permission flows.read.");
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

/** The graph of a definition, null until it is there; asked for again after an error that may pass. @param {string | null | undefined} definition @returns {GraphAnswer} */
export function useGraph(definition) {
  const [answer, setAnswer] = useState(/** @type {GraphAnswer & {of: string | null}} */ ({ data: null, error: null, of: null }));
  useEffect(() => {
    if (definition === null || definition === undefined) return;
    let isGone = false;
    const rest = new Rest();
    const ask = async () => {
      /** @type {GraphAnswer} */
      const found = await graphOf(definition).then((data) => ({ data, error: null }), (error) => ({ data: null, error }));
      if (isGone) return;
      setAnswer({ ...found, of: definition });
      if (found.error) rest.begin(found.error, ask);
    };
    void ask();
    return () => {
      isGone = true;
      rest.end();
    };
  }, [definition]);
  return answer.of === definition ? answer : { data: null, error: null };
}
