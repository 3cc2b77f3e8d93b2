/** The fields above the executions' list. Each change goes into the URL. */
import { html, useState } from "../vendor/preact.js";
import { Status, localTime } from "../parts/basics.js";
import { TextFilter } from "../parts/text-filter.js";
import { setQuery } from "../routes.js";
import { useQuery } from "../store.js";
import { AGES, FIELDS, STATUSES, filterOf, statusOf } from "./executions-filter.js";

/** @typedef {import("../routes.js").Query} Query */

/** @param {string} field */
const set = (field) => (/** @type {string} */ value) => setQuery({ [field]: value });

/** @param {{query: Query, children?: any}} props */
export function FilterBar({ query, children }) {
  const status = statusOf(query);
  const clear = () => setQuery(Object.fromEntries(FIELDS.map((field) => [field, null])), { replace: false });
  return html`<search class="filters">
    <div class="chips" role="group" aria-label="Status">
      ${STATUSES.map((choice) => html`<button type="button" key=${choice.value} aria-pressed=${String(choice === status)}
        onClick=${() => setQuery({ status: choice.value, ended: null }, { replace: false })}>
        ${choice.status ? html`<${Status} status=${choice.status} label=${choice.label} />` : choice.label}</button>`)}
    </div>
    <div class="fields">
      <${FlowField} value=${query.flow ?? ""} />
      <${TextFilter} onChange=${set("prefix")} name="prefix" label="Name begins with" value=${query.prefix ?? ""} pattern="[A-Za-z0-9_:.\\/\\-]*" />
      <${TextFilter} onChange=${set("qualifier")} name="qualifier" label="Version or alias" value=${query.qualifier ?? ""} pattern="[A-Za-z0-9_\\-]*" class="short" />
      <${SinceField} query=${query} />
      ${Object.keys(filterOf(query)).length > 0 && html`<button type="button" class="quiet" onClick=${clear}>Clear</button>`}
      <span class="grow"></span>
      ${children}
    </div>
  </search>`;
}

/** @param {{value: string}} props */
function FlowField({ value }) {
  const [typed, setTyped] = useState(/** @type {string | null} */ (null));
  const { data } = useQuery(typed === null || !/^[\w-]*$/.test(typed) ? null : "v1/flows", { limit: 20, namePrefix: typed }, { keep: true });
  return html`<${TextFilter} onChange=${set("flow")} name="flow" label="Flow" value=${value} list="flow-names"
      isWhole=${(/** @type {string} */ text) => !text || data?.flows.some((/** @type {any} */ flow) => flow.name === text)} pattern="[A-Za-z_][A-Za-z0-9_\\-]*" onTyped=${setTyped} />
    <datalist id="flow-names">${data?.flows.map((/** @type {any} */ flow) => html`<option key=${flow.name} value=${flow.name}></option>`)}</datalist>`;
}

/** @param {{query: Query}} props */
function SinceField({ query }) {
  const isByEnd = Boolean(query.ended);
  const value = query.ended ?? query.since ?? "";
  const isOther = value !== "" && !AGES.some((age) => age.value === value);
  const choose = (/** @type {any} */ event) => setQuery({ [isByEnd ? "ended" : "since"]: event.currentTarget.value, until: null }, { replace: false });
  const until = query.until ? ` until ${shown(query.until)}` : "";
  const word = isByEnd ? "Ended" : "Started";
  return html`<select aria-label=${word} value=${until ? "given" : value} onChange=${choose}>
    <option value="">${word} at any time</option>
    ${AGES.map((age) => html`<option key=${age.value} value=${age.value}>${word} ${age.value === "today" ? "" : "in the "}${age.label}</option>`)}
    ${(isOther || until) && html`<option value=${until ? "given" : value}>${word}${value && ` since ${shown(value)}`}${until}</option>`}
  </select>`;
}

/** An age as it is, an instant in local time. @param {string} text */
function shown(text) {
  return Number.isNaN(new Date(text).getTime()) ? text : localTime(text);
}
