/** Executions of all flows: the filter is in the URL, rows come by page, and new ones wait until they are asked for. */
import { html, useEffect, useMemo, useRef, useState } from "../vendor/preact.js";
import { stylesheet } from "../css.js";
import { useKeys } from "../keys.js";
import { onThisServer } from "../commands.js";
import { Copy, Empty, Problem, Time, Took } from "../parts/basics.js";
import { ExecutionStatus } from "../parts/execution-status.js";
import { causeText } from "../parts/json-values.js";
import { Table } from "../parts/table.js";
import { Link, go, path, setQuery } from "../routes.js";
import { may, usePages } from "../store.js";
import { BulkDialog, isPossible } from "./executions-bulk.js";
import { FIELDS, apiQueryOf, commandOf, filterOf } from "./executions-filter.js";
import { FilterBar } from "./executions-filter-bar.js";
import { Views } from "./executions-views.js";

stylesheet(new URL("./executions.css", import.meta.url));
const PAGE = 50;
/** Executions that "Select all that match" selects at most: each is changed by a request of its own. */
const SELECTED_MAX = 10_000;

/** @param {any} row */
const pathOf = (row) => path`/executions/${row.flowName}/${row.name}`;
/** @param {any} row */
const apiPathOf = (row) => path`v1/flows/${row.flowName}/executions/${row.name}?documents=false`;
/** @param {any} row */
const isLive = (row) => row.stoppedTime === null;
/** @param {any} row */
const keyOf = (row) => row.id;

/** @param {{row: any}} props */
function Trouble({ row }) {
  const error = row.parkedError ?? row.error;
  const text = [row.failedStep, error, causeText(row.cause)].filter(Boolean).join(" · ");
  return html`<span title=${text}>${row.failedStep && html`<code>${row.failedStep}</code> `}<span class="muted">${error}</span></span>`;
}

const COLUMNS = [
  { key: "status", title: html`<span class="narrow-hidden">Status</span>`, width: "118px", narrow: "18px", render: (/** @type {any} */ row) => html`<${ExecutionStatus} row=${row} />` },
  { key: "name", title: "Name", width: "minmax(120px, 2fr)", narrow: "minmax(0, 3fr)", render: (/** @type {any} */ row) => html`<${Link} to=${pathOf(row)} class="mono" title=${row.name} tabindex="-1">${row.name}<//>` },
  { key: "flow", title: "Flow", width: "minmax(0, 1.2fr)", narrow: "minmax(0, 2fr)", render: (/** @type {any} */ row) => html`<span title=${row.flowName}>${row.flowName}</span>` },
  { key: "version", title: "Version", width: "84px", narrow: false, render: (/** @type {any} */ row) => html`<span class="muted" title=${row.alias ?? ""}>${row.version ?? ""}${row.alias && ` (${row.alias})`}</span>` },
  { key: "started", title: "Started", width: "128px", narrow: false, render: (/** @type {any} */ row) => html`<${Time} at=${row.startedTime} />` },
  { key: "took", title: "Took", width: "76px", narrow: "64px", align: /** @type {const} */ ("right"), render: (/** @type {any} */ row) => html`<${Took} from=${row.startedTime} to=${row.stoppedTime} />` },
  { key: "step", title: "Failed step", width: "minmax(0, 1.6fr)", narrow: false, render: (/** @type {any} */ row) => html`<${Trouble} row=${row} />` },
];

/** @param {import("../routes.js").PageProps} props */
export default function Executions({ query }) {
  const filter = JSON.stringify(filterOf(query));
  const asked = useMemo(() => ({ ...apiQueryOf(query, Date.now()), limit: PAGE }), [filter]);
  const list = usePages("v1/executions", asked, "executions", { everySeconds: 5, isLive, placeOf: apiPathOf });
  const [selected, setSelected] = useState(/** @type {Set<string>} */ (new Set()));
  const [wish, setWish] = useState(/** @type {import("./executions-bulk.js").Wish | null} */ (null));
  const [isSelectingAll, setSelectingAll] = useState(false);
  const known = useRef(/** @type {Map<string, any>} */ (new Map())); // rows that are selected, whether listed any more or not
  const select = (/** @type {Set<string>} */ ids) => (setSelectingAll(false), setSelected(ids));
  useEffect(() => select(new Set()), [filter]);
  useEffect(() => {
    if (!isSelectingAll) return;
    setSelected(new Set(list.rows.slice(0, SELECTED_MAX).map(keyOf)));
    if (list.done || list.error || list.rows.length >= SELECTED_MAX) setSelectingAll(false);
    else if (!list.loading) list.more();
  }, [isSelectingAll, list.rows, list.loading]);
  const chosen = useMemo(() => {
    const rows = new Map([...known.current, ...list.rows.map((row) => /** @type {const} */ ([row.id, row]))]);
    const found = [...selected].flatMap((id) => rows.get(id) ?? []);
    known.current = new Map(found.map((row) => [row.id, row]));
    return found;
  }, [selected, list.rows]);
  const ask = (/** @type {"stop" | "redrive"} */ kind) => setWish({ kind, rows: chosen });
  const can = (/** @type {"stop" | "redrive"} */ kind) => may(`executions.${kind}`) && chosen.some((row) => isPossible(kind, row));
  const unless = (/** @type {boolean} */ isPossibleNow, /** @type {() => void} */ act) => () => (isPossibleNow ? act() : false);
  useKeys("Executions", [
    { keys: "r", label: "Show the new ones", run: () => void list.reload() },
    { keys: "S", label: "Stop the selection", run: unless(can("stop"), () => ask("stop")) },
    { keys: "R", label: "Redrive the selection", run: unless(can("redrive"), () => ask("redrive")) },
    { keys: "c", label: "Compare the two that are selected", run: unless(chosen.length === 2, () => compare(chosen)) },
    { keys: "Escape", label: "Select nothing", run: unless(selected.size > 0, () => select(new Set())) },
  ]);
  const isFiltered = filter !== "{}";
  const hasNoFlow = list.error?.code === "FlowNotExists";
  const changed = (/** @type {any[]} */ rows, /** @type {any[]} */ failed) => {
    select(new Set(failed.map(keyOf)));
    list.renew(rows.map(keyOf));
  };
  return html`<div class="page fills executions">
    <h1 class="hidden">Executions</h1>
    <${FilterBar} query=${query}><${Views} query=${query} /><//>
    <div class="panel list-panel grow">
      <div class="bar">
        ${selected.size
          ? html`<${BulkBar} count=${selected.size} can=${can} onAsk=${ask} onCompare=${() => compare(chosen)} onClear=${() => select(new Set())}
              onAll=${list.done || list.paused || selected.size < Math.min(list.rows.length, SELECTED_MAX) ? null : () => setSelectingAll(true)} isReading=${isSelectingAll} />`
          : html`<span class="muted" role="status">${counted(list)}</span>
              ${list.fresh > 0 && html`<button type="button" class="fresh" onClick=${list.reload}>${list.fresh < PAGE ? list.fresh : `${PAGE}+`} new</button>`}
              <span class="grow"></span>
              <${Copy} text=${commandOf(query)} label="Copy as command" />`}
      </div>
      <${Problem} error=${hasNoFlow ? null : list.error} onRetry=${list.reload} />
      <${Table} label="Executions" columns=${COLUMNS} rows=${list.rows} keyOf=${keyOf} loading=${list.loading} done=${list.done}
        onOpen=${(/** @type {any} */ row) => go(pathOf(row))} more=${list.paused ? undefined : list.more} onVisible=${list.onVisible}
        selected=${selected} onSelect=${select} isDim=${(/** @type {any} */ row) => list.gone.has(row.id)}
        empty=${hasNoFlow ? html`<${Empty} command=${onThisServer("flowserver flows list")}>There is no flow <code>${query.flow}</code>. <${Link} to="/flows">Show the flows<//><//>`
          : !list.error && html`<${Nothing} list=${list} isFiltered=${isFiltered} command=${commandOf(query)} />`}
        foot=${list.rows.length > 0 && html`<${Foot} list=${list} />`} />
    </div>
    ${wish && html`<${BulkDialog} ...${wish} onClose=${() => setWish(null)} onChanged=${changed} />`}
  </div>`;
}

/** The older one is on the left. @param {any[]} two */
function compare(two) {
  const [right, left] = two.toSorted((one, other) => (one.startedTime < other.startedTime ? 1 : -1)).map((row) => `${row.flowName}/${row.name}`);
  go("/compare", { left, right });
}

/** @param {{rows: any[], done: boolean, loading: boolean, isFirst: boolean, error: any}} list */
function counted({ rows, done, loading, isFirst, error }) {
  if (error && !rows.length) return "";
  if (loading && (isFirst || !rows.length)) return "Reading…";
  return `${rows.length.toLocaleString()}${done ? "" : "+"} ${rows.length === 1 && done ? "execution" : "executions"}`;
}

/**
 * @param {{count: number, can: (kind: "stop" | "redrive") => boolean, onAsk: (kind: "stop" | "redrive") => void,
 *   onCompare: () => void, onClear: () => void, onAll: (() => void) | null, isReading: boolean}} props `onAll` null: all that match are selected
 */
function BulkBar({ count, can, onAsk, onCompare, onClear, onAll, isReading }) {
  return html`<div class="row bulk" role="toolbar" aria-label="Selection">
    <strong role="status">${count.toLocaleString()} selected</strong>
    <button type="button" disabled=${!can("redrive")} onClick=${() => onAsk("redrive")}>Redrive…</button>
    <button type="button" class="danger" disabled=${!can("stop")} onClick=${() => onAsk("stop")}>Stop…</button>
    <button type="button" disabled=${count !== 2} onClick=${onCompare} title="Select two to compare them">Compare</button>
    <button type="button" class="quiet" onClick=${onClear}>Select nothing</button>
    ${isReading ? html`<span class="muted">Reading…</span>` : onAll && count < SELECTED_MAX && html`<button type="button" class="quiet" onClick=${onAll}>Select all that match</button>`}
  </div>`;
}

/** @param {{list: any, isFiltered: boolean, command: string}} props */
function Nothing({ list, isFiltered, command }) {
  if (list.paused) {
    return html`<div class="empty"><p>None of the many executions that the server has looked at matches, and there are more.</p>
      <button type="button" onClick=${list.more}>Look further</button></div>`;
  }
  if (!isFiltered) return html`<${Empty} command=${onThisServer("flowserver start FLOW --input '{}'")}>There are no executions yet. Start one:<//>`;
  const clear = () => setQuery(Object.fromEntries(FIELDS.map((field) => [field, null])), { replace: false });
  return html`<${Empty} command=${command}>No execution matches. <button type="button" onClick=${clear}>Show all</button><//>`;
}

/** @param {{list: any}} props */
function Foot({ list }) {
  if (list.paused) return html`<div class="table-foot"><button type="button" onClick=${list.more}>Look for older ones</button></div>`;
  if (list.loading) return html`<div class="table-foot">Reading…</div>`;
  return list.done ? html`<div class="table-foot">These are all.</div>` : null;
}
