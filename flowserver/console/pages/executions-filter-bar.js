/** The fields above the executions' list. Each change goes into the URL. */
import { html, useEffect, useRef, useState } from "../vendor/preact.js";
import { Status } from "../parts/basics.js";
import { setQuery } from "../routes.js";
import { useQuery } from "../store.js";
import { AGES, FIELDS, STATUSES, filterOf, statusOf } from "./executions-filter.js";

/** @typedef {import("../routes.js").Query} Query */

const TYPED_MS = 200;

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
      <${TextField} name="prefix" label="Name begins with" value=${query.prefix ?? ""} pattern="[A-Za-z0-9_:.\\/\\-]*" />
      <${TextField} name="qualifier" label="Version or alias" value=${query.qualifier ?? ""} pattern="[A-Za-z0-9_\\-]*" class="short" />
      <${SinceField} query=${query} />
      ${Object.keys(filterOf(query)).length > 0 && html`<button type="button" class="quiet" onClick=${clear}>Clear</button>`}
      <span class="grow"></span>
      ${children}
    </div>
  </search>`;
}

/**
 * A text that goes into the URL when typing pauses, or at Enter.
 * @param {{name: string, label: string, value: string, class?: string, list?: string, pattern?: string, onTyped?: (text: string) => void}} props
 */
function TextField({ name, label, value, class: more = "", list, pattern, onTyped }) {
  const [text, setText] = useState(value);
  const timer = useRef(0);
  const sent = useRef(value);
  useEffect(() => {
    if (value === sent.current) return;
    sent.current = value;
    setText(value);
  }, [value]);
  const send = (/** @type {HTMLInputElement} */ input) => {
    clearTimeout(timer.current);
    if (!input.validity.valid || input.value === sent.current) return;
    sent.current = input.value;
    setQuery({ [name]: input.value });
  };
  const onInput = (/** @type {any} */ event) => {
    const input = event.currentTarget;
    setText(input.value);
    onTyped?.(input.value);
    clearTimeout(timer.current);
    timer.current = setTimeout(() => send(input), TYPED_MS);
  };
  const onKeyDown = (/** @type {any} */ event) => {
    if (event.key === "Enter") send(event.currentTarget);
    if (event.key === "Escape") event.currentTarget.blur();
  };
  return html`<input type="text" name=${name} class=${more} aria-label=${label} placeholder=${label} value=${text} list=${list} pattern=${pattern}
    autocomplete="off" spellcheck="false" onInput=${onInput} onKeyDown=${onKeyDown} onChange=${(/** @type {any} */ event) => send(event.currentTarget)} />`;
}

/** @param {{value: string}} props */
function FlowField({ value }) {
  const [typed, setTyped] = useState(/** @type {string | null} */ (null));
  const { data } = useQuery(typed === null || !/^[\w-]*$/.test(typed) ? null : "v1/flows", { limit: 20, namePrefix: typed }, { keep: true });
  return html`<${TextField} name="flow" label="Flow" value=${value} list="flow-names" pattern="[A-Za-z_][A-Za-z0-9_\\-]*" onTyped=${setTyped} />
    <datalist id="flow-names">${data?.flows.map((/** @type {any} */ flow) => html`<option key=${flow.name} value=${flow.name}></option>`)}</datalist>`;
}

/** @param {{query: Query}} props */
function SinceField({ query }) {
  const isByEnd = Boolean(query.ended);
  const value = query.ended ?? query.since ?? "";
  const isOther = value !== "" && !AGES.some((age) => age.value === value);
  const choose = (/** @type {any} */ event) => setQuery({ [isByEnd ? "ended" : "since"]: event.currentTarget.value }, { replace: false });
  const word = isByEnd ? "Ended" : "Started";
  return html`<select aria-label=${word} value=${value} onChange=${choose}>
    <option value="">${word} at any time</option>
    ${AGES.map((age) => html`<option key=${age.value} value=${age.value}>${word} ${age.value === "today" ? "" : "in the "}${age.label}</option>`)}
    ${isOther && html`<option value=${value}>${word} since ${value}</option>`}
  </select>`;
}
