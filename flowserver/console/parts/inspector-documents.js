/** The documents of a step: input, output, `$local`, and how they differ. */
import { html, useEffect, useState } from "../vendor/preact.js";
import { stringifyJson } from "../exact-json.js";
import { Loading, Tabs } from "./basics.js";
import { JsonTree } from "./json-tree.js";

/** @typedef {import("./step-story.js").Entry} Entry */
/** @typedef {{value: string, label: string, title: [string, string], texts: () => [any, any]}} Comparison */

/** @param {{entry: Entry, previous: Entry | undefined}} props */
export function Documents({ entry, previous }) {
  const input = entry.own ?? entry.input;
  const tabs = [
    { value: "input", label: "Input" },
    { value: "output", label: "Output" },
    ...(entry.local !== undefined || entry.after !== undefined ? [{ value: "local", label: "Local" }] : []),
    { value: "diff", label: "Diff" },
  ];
  const [tab, setTab] = useState("input");
  const shown = tabs.some((each) => each.value === tab) ? tab : "input";
  return html`<section class="inspector-documents" aria-label="Documents">
    <${Tabs} tabs=${tabs} value=${shown} onChange=${setTab} label="Documents of the step" />
    <div role="tabpanel" aria-label=${shown}>
      ${shown === "input" && html`<${Value} value=${input} root=${entry.own === undefined ? "$input" : "$"} none="It has not got its input yet." />
        ${entry.own !== undefined && entry.input !== undefined && html`<details><summary>Input of the list of steps</summary><${JsonTree} value=${entry.input} root="$input" /></details>`}`}
      ${shown === "output" && html`<${Value} value=${entry.output ?? lastOutput(entry)} root="$local" none="It has given no output." />`}
      ${shown === "local" && html`${entry.local !== undefined && html`<h4>Before</h4><${JsonTree} value=${entry.local} root="$local" />`}
        ${entry.after !== undefined && html`<h4>After</h4><${JsonTree} value=${entry.after} root="$local" />`}`}
      ${shown === "diff" && html`<${Differences} entry=${entry} previous=${previous} />`}
    </div>
  </section>`;
}

/** @param {Entry} entry */
const lastOutput = (entry) => entry.attempts[entry.attempts.length - 1]?.output;

/** @param {{value: any, root: string, none: string}} props */
function Value({ value, root, none }) {
  return value === undefined || value === null ? html`<p class="muted">${none}</p>` : html`<${JsonTree} value=${value} root=${root} />`;
}

/** @param {Entry} entry @param {Entry | undefined} previous @returns {Comparison[]} */
function comparisonsOf(entry, previous) {
  const input = entry.own ?? entry.input ?? null;
  /** @type {Comparison[]} */
  const found = [{ value: "io", label: "Output against input", title: ["input", "output"], texts: () => [input, entry.output ?? lastOutput(entry) ?? null] }];
  const { attempts } = entry;
  for (let at = attempts.length - 1; at > 0; at -= 1) {
    const [older, newer] = [attempts[at - 1], attempts[at]];
    const titles = /** @type {[string, string]} */ ([`attempt ${older.number}`, `attempt ${newer.number}`]);
    found.push({ value: `attempt ${at}`, label: `Attempt ${newer.number} against ${older.number}`, title: titles, texts: () => [partsOf(older), partsOf(newer)] });
  }
  if (previous) {
    const texts = () => /** @type {[any, any]} */ ([previous.own ?? previous.input ?? null, input]);
    found.push({ value: "entry", label: "Input against the time before", title: ["the time before", "this time"], texts });
  }
  return found;
}

/** @param {import("./step-story.js").Attempt} attempt */
function partsOf({ input, output, error, cause }) {
  return { input, output, error, cause };
}

/** @param {{entry: Entry, previous: Entry | undefined}} props */
function Differences({ entry, previous }) {
  const all = comparisonsOf(entry, previous);
  const [chosen, setChosen] = useState(all[0].value);
  const [Diff, setDiff] = useState(/** @type {any} */ (null));
  useEffect(() => {
    import("./diff.js").then((module) => setDiff(() => module.Diff));
  }, []);
  const comparison = all.find((each) => each.value === chosen) ?? all[0];
  const [left, right] = comparison.texts().map((each) => stringifyJson(each ?? null, 2));
  return html`<select aria-label="What to compare" value=${comparison.value} onChange=${(/** @type {any} */ event) => setChosen(event.currentTarget.value)}>
      ${all.map((each) => html`<option key=${each.value} value=${each.value}>${each.label}</option>`)}
    </select>
    ${Diff ? html`<${Diff} left=${left} right=${right} leftTitle=${comparison.title[0]} rightTitle=${comparison.title[1]} language="json" />` : html`<${Loading} />`}`;
}
