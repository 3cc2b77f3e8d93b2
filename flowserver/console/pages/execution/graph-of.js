/** The graph of a definition; asked for once for each. */
import { useEffect, useState } from "../../vendor/preact.js";
import { api } from "../../store.js";

const KEPT_MAX = 10;
/** @type {Map<string, Promise<any>>} */
const kept = new Map();

/** @param {string} definition */
function graphOf(definition) {
  let found = kept.get(definition);
  if (!found) {
    found = api("v1/definitions/graph", { method: "POST", text: definition, type: "text/plain" });
    found.catch(() => kept.delete(definition));
    kept.set(definition, found);
    if (kept.size > KEPT_MAX) kept.delete(/** @type {string} */ (kept.keys().next().value));
  }
  return found;
}

/** @param {string | null} definition @returns {{data: any, error: any}} */
export function useGraph(definition) {
  const [answer, setAnswer] = useState(/** @type {{data: any, error: any}} */ ({ data: null, error: null }));
  useEffect(() => {
    if (definition === null) return;
    let isShown = true;
    graphOf(definition).then(
      (data) => isShown && setAnswer({ data, error: null }),
      (error) => isShown && setAnswer({ data: null, error }),
    );
    return () => void (isShown = false);
  }, [definition]);
  return answer;
}
