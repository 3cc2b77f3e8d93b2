/** What the server says to a text while it is being written: findings, and the graph. */
import { Rest, api, useQuery } from "../../store.js";
import { useEffect, useMemo, useState } from "../../vendor/preact.js";

/**
 * @typedef {import("../../parts/editor.js").Finding} Finding
 * @typedef {{findings: Finding[], graph: any, checked: string | null, isFirst: boolean, isLate: boolean, isOld: boolean, error: any}} Check
 *   `graph`: the last one that could be drawn; `isOld`: it is that of an earlier text;
 *   `checked`: the text that was checked last; `isFirst`: nothing was checked yet; `isLate`: the findings are of an earlier text, and the check takes long
 */

const PAUSE_MS = 250;
/** A check that takes longer is said to be under way. */
const LATE_MS = 1_000;

/**
 * The check of a text, made a moment after the last change. A newer change ends the requests of an older one.
 * After an error that may pass it is made again.
 * @param {string | null} text @returns {Check}
 */
export function useCheck(text) {
  const [check, setCheck] = useState(/** @type {Check} */ ({ findings: [], graph: null, checked: null, isFirst: true, isLate: false, isOld: false, error: null }));
  useEffect(() => {
    if (text === null) return;
    const request = new AbortController();
    const rest = new Rest();
    const look = async () => {
      try {
        const report = await ask("v1/definitions/validate", text, request.signal);
        const graph = report.valid ? await ask("v1/definitions/graph", text, request.signal) : null;
        if (request.signal.aborted) return;
        setCheck((before) => {
          const kept = before.graph?.nodes.some((/** @type {any} */ node) => text.includes(node.name)) ? before.graph : null;
          return { findings: report.diagnostics, graph: graph ?? kept, checked: text, isOld: graph === null && kept !== null, isFirst: false, isLate: false, error: null };
        });
      } catch (error) {
        if (request.signal.aborted) return;
        setCheck((before) => ({ ...before, checked: text, isFirst: false, isLate: false, error }));
        rest.begin(error, look);
      }
    };
    const timer = setTimeout(look, PAUSE_MS);
    const late = setTimeout(() => setCheck((before) => ({ ...before, isLate: before.checked !== text })), LATE_MS);
    return () => {
      clearTimeout(timer);
      clearTimeout(late);
      rest.end();
      request.abort();
    };
  }, [text]);
  return check;
}

/** @param {string} path @param {string} text @param {AbortSignal} signal @returns {Promise<any>} */
const ask = (path, text, signal) => api(path, { method: "POST", body: { definition: text }, signal });

/** Names of functions, flows, queues and topics that are offered for `resourceArn`: the first of each. */
const OFFERED_MAX = 200;

/** What the editor needs to know of the server: its language, what steps can call, and why findings of rules are true. */
export function useKnowledge() {
  const page = { limit: OFFERED_MAX };
  const language = useQuery("v1/definitions/language").data;
  const listed = useQuery("v1/definitions/rules").data;
  const functions = useQuery("v1/functions", page).data;
  const flows = useQuery("v1/flows", page).data;
  const queues = useQuery("v1/queues", page).data;
  const topics = useQuery("v1/topics", page).data;
  return useMemo(() => {
    const names = (/** @type {any[] | undefined} */ rows) => (rows ?? []).map((row) => row.name);
    const resources = {
      functions: (functions?.functions ?? []).map((/** @type {any} */ row) => `${row.service}/${row.function}`),
      flows: names(flows?.flows),
      queues: names(queues?.queues),
      topics: names(topics?.topics),
    };
    const rules = new Map((listed?.rules ?? []).map((/** @type {any} */ rule) => [rule.id, rule]));
    return { language, resources, rules };
  }, [language, listed, functions, flows, queues, topics]);
}
