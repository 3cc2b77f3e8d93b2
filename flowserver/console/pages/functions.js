/** The registered functions: where they are, how they fare, and what their limits are. */
import { html, useEffect, useState } from "../vendor/preact.js";
import { stylesheet } from "../css.js";
import { useKeys } from "../keys.js";
import { onThisServer } from "../commands.js";
import { Confirm, Copy, Empty, Problem, Time } from "../parts/basics.js";
import { duration } from "../parts/durations.js";
import { FunctionDialog } from "../parts/function-dialog.js";
import { Facts, Side, Split } from "../parts/side.js";
import { Table } from "../parts/table.js";
import { path, setQuery } from "../routes.js";
import { api, may, usePages, useQuery } from "../store.js";

stylesheet(new URL("./functions.css", import.meta.url));

const HEALTH_SECONDS = 5;

/** @param {any} each */
export const nameOf = (each) => (each.service === "-" ? each.function : `${each.service}/${each.function}`);
/** @param {any} each */
const keyOf = (each) => `${each.service}/${each.function}`;
/** @param {any} each */
const apiPathOf = (each) => path`v1/functions/${each.service}/${each.function}`;

/** @param {number | null | undefined} ms */
const took = (ms) => (ms === null || ms === undefined ? html`<span class="muted">–</span>` : html`<span class="number">${duration(ms)}</span>`);

/** @param {{health: any}} props */
function Errors({ health }) {
  if (!health?.calls) return html`<span class="muted">–</span>`;
  const share = (100 * health.errors) / health.calls;
  if (!health.errors) return html`<span class="muted">0</span>`;
  return html`<span class="tone-fail number">${health.errors.toLocaleString()} (${share < 1 ? "<1" : Math.round(share)} %)</span>`;
}

/** @typedef {{row: any, health: any}} Shown */
const right = /** @type {const} */ ("right");
const COLUMNS = [
  { key: "name", title: "Function", width: "minmax(120px, 1.5fr)", render: (/** @type {Shown} */ { row }) => html`<span class="mono" title=${nameOf(row)}>${nameOf(row)}</span>` },
  { key: "url", title: "Address", width: "minmax(0, 1.5fr)", narrow: false, render: (/** @type {Shown} */ { row }) => html`<span class="mono muted" title=${row.url}>${row.url}</span>` },
  { key: "calls", title: "Calls", width: "64px", align: right, render: (/** @type {Shown} */ { health }) => html`<span class="number">${(health?.calls ?? 0).toLocaleString()}</span>` },
  { key: "errors", title: "Errors", width: "92px", narrow: "80px", align: right, render: (/** @type {Shown} */ { health }) => html`<${Errors} health=${health} />` },
  { key: "p50", title: "p50", width: "72px", narrow: false, align: right, render: (/** @type {Shown} */ { health }) => took(health?.p50Ms) },
  { key: "p95", title: "p95", width: "72px", narrow: "64px", align: right, render: (/** @type {Shown} */ { health }) => took(health?.p95Ms) },
  { key: "flight", title: "Under way", width: "80px", narrow: false, align: right, render: (/** @type {Shown} */ { health, row }) =>
    html`<span class="number">${health?.inFlight ?? 0}${row.concurrencyMax ? html`<span class="muted"> of ${row.concurrencyMax}</span>` : ""}</span>` },
];

/** @param {import("../routes.js").PageProps} props */
export default function Functions({ query }) {
  const list = usePages("v1/functions", { limit: 200 }, "functions");
  const measured = useQuery("v1/functions/health", { limit: 1000 }, { everySeconds: HEALTH_SECONDS, keep: true });
  const [dialog, setDialog] = useState(/** @type {{kind: "new" | "edit" | "delete", row: any} | null} */ (null));
  const found = (query.find ?? "").toLowerCase();
  const health = new Map((measured.data?.functions ?? []).map((/** @type {any} */ each) => [keyOf(each), each]));
  const rows = list.rows.filter((row) => nameOf(row).toLowerCase().includes(found)).map((row) => ({ row, health: health.get(keyOf(row)) }));
  const chosen = rows.find(({ row }) => keyOf(row) === query.function);
  useKeys("Functions", [{ keys: "c", label: "Register a function", run: () => (may("functions.write") ? setDialog({ kind: "new", row: null }) : false) }]);

  useEffect(() => {
    if (found && !list.done && !list.loading && !list.error) list.more(); // what is looked for may be further down
  }, [found, list.done, list.loading, list.error]);
  const remove = async () => {
    await api(apiPathOf(dialog?.row), { method: "DELETE" });
    setQuery({ function: null });
    list.reload();
  };
  const side = chosen && html`<${Details} key=${query.function} shown=${chosen} measured=${measured.data} onEdit=${() => setDialog({ kind: "edit", row: chosen.row })}
    onDelete=${() => setDialog({ kind: "delete", row: chosen.row })} />`;
  return html`<div class="page fills functions">
    <h1 class="hidden">Functions</h1>
    <div class="row">
      <input type="search" aria-label="Find a function" placeholder="Find a function" value=${query.find ?? ""} onInput=${(/** @type {any} */ event) => setQuery({ find: event.currentTarget.value })} />
      <span class="muted">${measured.data && html`Calls of node <code>${measured.data.node}</code> in the last ${measured.data.windowSeconds / 60} minutes`}</span>
      <span class="grow"></span>
      ${may("functions.write") && html`<button type="button" class="primary" onClick=${() => setDialog({ kind: "new", row: null })}>Register a function…</button>`}
    </div>
    <${Problem} error=${list.error ?? measured.error} onRetry=${list.reload} />
    <${Split} side=${side}>
      <section class="panel">
        <${Table} label="Functions" columns=${COLUMNS} rows=${rows} keyOf=${(/** @type {Shown} */ { row }) => keyOf(row)} loading=${list.loading} done=${list.done} current=${chosen ? query.function : null}
          more=${list.more} onOpen=${(/** @type {Shown} */ { row }) => setQuery({ function: keyOf(row) })}
          empty=${!list.error && (found
            ? html`<p class="empty">No function has this in its name.</p>`
            : html`<${Empty} command=${onThisServer("flowserver functions serve functions.yaml")}>No function is registered yet. Host Python functions, or register an address:<//>`)} />
      </section>
    <//>
    ${dialog?.kind === "delete" && html`<${Confirm} title=${`Unregister ${nameOf(dialog.row)}`} action="Unregister" danger onConfirm=${remove} onClose=${() => setDialog(null)}>
      <p>Calls under way are not touched; later ones fail with <code>FC.FunctionNotFound</code>.</p><//>`}
    ${dialog && dialog.kind !== "delete" && html`<${FunctionDialog} row=${dialog.row} onClose=${() => setDialog(null)}
      onPut=${async (/** @type {string} */ service, /** @type {string} */ name, /** @type {any} */ body) => {
        await api(path`v1/functions/${service}/${name}`, { method: "PUT", body });
        list.reload();
        setQuery({ function: `${service}/${name}` });
      }} />`}
  </div>`;
}

/** @param {{shown: Shown, measured: any, onEdit: () => void, onDelete: () => void}} props */
function Details({ shown: { row, health }, measured, onEdit, onDelete }) {
  const command = onThisServer(`flowserver functions get ${nameOf(row)}`);
  const errors = Object.entries(health?.errorsByName ?? {});
  const actions = html`<button type="button" disabled=${!may("functions.write")} onClick=${onEdit}>Edit…</button>
    <button type="button" class="danger" disabled=${!may("functions.write")} onClick=${onDelete}>Unregister…</button>
    <${Copy} text=${command} label="Copy as command" />`;
  return html`<${Side} title=${html`<span class="mono">${nameOf(row)}</span>`} label=${`Function ${nameOf(row)}`} onClose=${() => setQuery({ function: null })} actions=${actions}>
    <${Facts} facts=${[
      ["Address", html`<span class="mono">${row.url}</span>`],
      ["ARN", html`<span class="row nowrap"><code>${arnOf(row)}</code><${Copy} text=${arnOf(row)} /></span>`],
      ["Time for a call", `${row.timeoutSeconds} s`],
      ["At once", row.concurrencyMax ?? html`<span class="muted">without a bound</span>`],
      ["Waiting", row.waitingMax],
      ["Headers", Object.keys(row.headers).length ? html`<span class="mono">${Object.keys(row.headers).join(", ")}</span>` : null],
      ["Initialize", row.initializeUrl && html`<span class="mono">${row.initializeUrl}</span>`],
      ["Before a stop", row.preStopUrl && html`<span class="mono">${row.preStopUrl}</span>`],
      ["Registered", html`<${Time} at=${row.lastModifiedTime} />`],
    ]} />
    <div><h3>Calls of the last minutes</h3>
      <${Facts} facts=${[
        ["Calls", rateOf(health?.calls ?? 0, measured)],
        ["Errors", html`<${Errors} health=${health} />`],
        ["p50", took(health?.p50Ms)],
        ["p95", took(health?.p95Ms)],
        ["p99", took(health?.p99Ms)],
        ["Under way", health?.inFlight ?? 0],
        ["Counted since", measured && html`<${Time} at=${measured.sinceTime} />`],
      ]} /></div>
    ${errors.length > 0 && html`<div><h3>Errors</h3><ul class="rows">
      ${errors.map(([name, count]) => html`<li key=${name}><bdi class="mono">${name}</bdi><span class="end number">${Number(count).toLocaleString()}</span></li>`)}
    </ul></div>`}
  <//>`;
}

/** "120, 24 a minute": of the window, or since the node counts. @param {number} calls @param {any} measured */
function rateOf(calls, measured) {
  if (!calls || !measured) return calls.toLocaleString();
  const seconds = Math.min(measured.windowSeconds, (Date.now() - Date.parse(measured.sinceTime)) / 1_000);
  const rate = (60 * calls) / Math.max(1, seconds);
  return `${calls.toLocaleString()}, ${rate < 10 ? rate.toFixed(1) : Math.round(rate).toLocaleString()} a minute`;
}

/** What definitions write. @param {any} row */
function arnOf(row) {
  const [service, qualifier] = row.service.split(".");
  const within = service === "-" ? "" : `services/${service}${qualifier ? `.${qualifier}` : ""}/`;
  return `acs:fc:::${within}functions/${row.function}`;
}
