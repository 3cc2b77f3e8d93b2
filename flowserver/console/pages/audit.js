/** The audit: who did what, on what, from where, and with what result. */
import { html } from "../vendor/preact.js";
import { Problem, Status, Time } from "../parts/basics.js";
import { Facts, Side, Split } from "../parts/side.js";
import { Table } from "../parts/table.js";
import { TextFilter } from "../parts/text-filter.js";
import { setQuery } from "../routes.js";
import { usePages } from "../store.js";

const FILTERS = [
  ["object", "Object, such as flows/order"],
  ["operation", "Operation"],
  ["key", "Id of the key"],
  ["result", "Result"],
];
const REFUSAL_WORDS = /^(authenticate|further refusals)$/;

/** @param {any} record */
const whoOf = (record) => record.caller || record.key;

/** Refusals and errors are red, what nobody knows is grey. @param {{record: any}} props */
function Result({ record }) {
  if (record.result === null) return html`<${Status} status="Stopped" label="Unknown" />`;
  if (record.result === "ok") return html`<${Status} status="Succeeded" label="Done" />`;
  return html`<${Status} status="Failed" label=${record.count > 1 ? `${record.result} × ${record.count.toLocaleString()}` : record.result} />`;
}

const right = /** @type {const} */ ("right");
const COLUMNS = [
  { key: "time", title: "When", width: "132px", narrow: "96px", align: right, render: (/** @type {any} */ row) => html`<${Time} at=${row.lastTime ?? row.time} />` },
  { key: "who", title: "Who", width: "minmax(0, 1fr)", render: (/** @type {any} */ row) => (whoOf(row) ? html`<bdi title=${row.key}>${whoOf(row)}</bdi>` : html`<span class="muted">–</span>`) },
  { key: "operation", title: "Operation", width: "minmax(0, 1fr)", render: (/** @type {any} */ row) => html`<span class=${REFUSAL_WORDS.test(row.operation) ? "muted" : "mono"}>${row.operation}</span>` },
  { key: "object", title: "Object", width: "minmax(0, 2fr)", narrow: false, render: (/** @type {any} */ row) => html`<bdi class="mono" title=${row.object}>${row.object}</bdi>` },
  { key: "from", title: "From", width: "minmax(0, 1fr)", narrow: false, render: (/** @type {any} */ row) => html`<span class="muted">${row.api}</span> <bdi>${row.address}</bdi>` },
  { key: "result", title: "Result", width: "minmax(0, 1fr)", render: (/** @type {any} */ row) => html`<${Result} record=${row} />` },
];

/** @param {import("../routes.js").PageProps} props */
export default function Audit({ query }) {
  const given = Object.fromEntries(FILTERS.map(([name]) => [name, query[name] || undefined]));
  const list = usePages("v1/audit", { limit: 100, ...given }, "records");
  const chosen = list.rows.find((/** @type {any} */ row) => row.id === query.record);
  return html`<div class="page fills">
    <h1 class="hidden">Audit</h1>
    <search class="row">
      ${FILTERS.map(([name, label]) => html`<${TextFilter} key=${name} name=${name} label=${label} value=${query[name] ?? ""} onChange=${(/** @type {string} */ text) => setQuery({ [name]: text, record: null })} />`)}
      <span class="grow"></span>
      <button type="button" onClick=${list.reload}>Read again</button>
    </search>
    <${Problem} error=${list.error} onRetry=${list.reload} />
    <${Split} side=${chosen && html`<${Details} key=${chosen.id} record=${chosen} />`}>
      <section class="panel">
        <${Table} label="Audit" columns=${COLUMNS} rows=${list.rows} keyOf=${(/** @type {any} */ row) => row.id} loading=${list.loading} done=${list.done} more=${list.more}
          current=${chosen?.id ?? null} onOpen=${(/** @type {any} */ row) => setQuery({ record: row.id })} empty=${!list.error && html`<p class="empty">There are no such records.</p>`} />
      </section>
    <//>
  </div>`;
}

/** @param {{record: any}} props */
function Details({ record }) {
  return html`<${Side} title=${html`<span class="mono">${record.operation}</span>`} label=${`Record of ${record.operation}`} onClose=${() => setQuery({ record: null })}>
    <${Facts} facts=${[
      ["Object", record.object ? html`<bdi class="mono">${record.object}</bdi>` : null],
      ["Result", html`<${Result} record=${record} />`],
      ["Began", html`<${Time} at=${record.time} />`],
      ["Last", record.lastTime && html`<${Time} at=${record.lastTime} />`],
      ["Who", record.caller ? html`<bdi>${record.caller}</bdi>` : null],
      ["Key", record.key ? html`<code>${record.key}</code>` : null],
      ["API", record.api],
      ["From", html`<bdi class="mono">${record.address}</bdi>`],
      ["Request", record.requestId ? html`<code>${record.requestId}</code>` : null],
    ]} />
  <//>`;
}
