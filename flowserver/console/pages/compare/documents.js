/** What went into both runs, or into one of their steps, and what came out, as differences. */
import { stringifyJson } from "../../exact-json.js";
import { Loading, Panel, Problem, Tabs } from "../../parts/basics.js";
import { Diff } from "../../parts/diff.js";
import { entriesOf, isMany } from "../../parts/step-story.js";
import { useQuery } from "../../store.js";
import { html, useEffect, useRef, useState } from "../../vendor/preact.js";

/** @typedef {{flow: string, name: string, apiPath: string}} Side */

const EVENTS = 100;

/** @param {any} value */
const textOf = (value) => stringifyJson(value ?? null, 2);

/** What an execution ended with: its output, or its error. @param {any} execution */
const endOf = ({ output, error, cause, status }) => (output !== null ? output : { status, error, cause });

const TABS = [
  { value: "input", label: "Input" },
  { value: "output", label: "Output" },
  { value: "definition", label: "Definition" },
];

/** @param {{a: any, b: any, tab: string, onTab: (tab: string) => void}} props  `a`, `b`: the executions */
export function RunDocuments({ a, b, tab, onTab }) {
  const shown = TABS.some((each) => each.value === tab) ? tab : "input";
  /** @type {Record<string, (execution: any) => string>} */
  const texts = { input: ({ input }) => textOf(input), output: (execution) => textOf(endOf(execution)), definition: ({ definition }) => definition };
  return html`<${Panel} class="compare-documents">
    <${Tabs} tabs=${TABS} value=${shown} onChange=${onTab} label="What to compare" />
    <div role="tabpanel" aria-label=${shown}>
      <${Diff} left=${texts[shown](a)} right=${texts[shown](b)} leftTitle=${`A: ${a.name}`} rightTitle=${`B: ${b.name}`}
        language=${shown === "definition" ? "yaml" : "json"} />
    </div>
  <//>`;
}

const STEP_TABS = [
  { value: "input", label: "Input" },
  { value: "output", label: "Output" },
];

/**
 * One step: of several entries the last. A step that ran in many iterations is compared for one of them.
 * @param {{path: string, a: Side, b: Side, onClose: () => void}} props
 */
export function StepDocuments({ path, a, b, onClose }) {
  const [tab, setTab] = useState("input");
  const [number, setNumber] = useState(0);
  const one = isMany(path) ? path.replaceAll("[]", `[${number}]`) : path;
  const [left, right] = [useLastEntry(a, one), useLastEntry(b, one)];
  const error = left.error ?? right.error;
  const isKnown = left.entry !== undefined && right.entry !== undefined;
  const pick = (/** @type {any} */ entry) => (tab === "input" ? (entry?.own ?? entry?.input) : outputOf(entry));
  const panel = useRef(/** @type {HTMLDivElement | null} */ (null));
  useEffect(() => panel.current?.scrollIntoView({ block: "nearest" }), [isKnown]);
  return html`<div ref=${panel}><${Panel} title=${html`Step <bdi class="mono">${one}</bdi>`} class="compare-documents" actions=${html`
    ${isMany(path) && html`<label class="row">Iteration <input type="number" min="0" value=${number}
      onInput=${(/** @type {any} */ event) => setNumber(Math.max(0, Math.trunc(Number(event.currentTarget.value)) || 0))} /></label>`}
    <button type="button" onClick=${onClose}>Close</button>`}>
    <${Tabs} tabs=${STEP_TABS} value=${tab} onChange=${setTab} label="What to compare of the step" />
    <div role="tabpanel" aria-label=${tab}>
      <${Problem} error=${error} />
      ${!error && !isKnown && html`<${Loading} />`}
      ${
        !error &&
        isKnown &&
        html`
          ${left.entry === null && html`<p class="diff-note muted">A did not reach this step.</p>`}
          ${right.entry === null && html`<p class="diff-note muted">B did not reach this step.</p>`}
          <${Diff} left=${textOf(pick(left.entry))} right=${textOf(pick(right.entry))} leftTitle=${`A: ${a.name}`} rightTitle=${`B: ${b.name}`} language="json" />`
      }
    </div>
  <//></div>`;
}

/** @param {any} entry */
const outputOf = (entry) => entry?.output ?? (entry?.error ? { error: entry.error, cause: entry.cause } : entry?.attempts?.at(-1)?.output);

/**
 * The last time that a run entered a step; null if it never did, undefined while that is not known.
 * @param {Side} side @param {string} step
 */
function useLastEntry(side, step) {
  const { data, error } = useQuery(`${side.apiPath}/events`, { path: step, order: "desc", limit: EVENTS });
  const entries = data && entriesOf([...data.events].reverse());
  return { entry: entries && (entries[entries.length - 1] ?? null), error };
}
