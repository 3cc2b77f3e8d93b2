/** The flows by name, with the last run of each that is on screen. */
import { html, useMemo, useState } from "../vendor/preact.js";
import { stylesheet } from "../css.js";
import { useKeys } from "../keys.js";
import { onThisServer } from "../commands.js";
import { Empty, Problem, Time } from "../parts/basics.js";
import { ExecutionStatus } from "../parts/execution-status.js";
import { Icon } from "../parts/icons.js";
import { StartDialog } from "../parts/start-dialog.js";
import { Table } from "../parts/table.js";
import { TextFilter } from "../parts/text-filter.js";
import { Link, go, path, setQuery } from "../routes.js";
import { api, may, usePages, useQuery } from "../store.js";

stylesheet(new URL("./executions.css", import.meta.url));

/** @param {any} flow */
const pathOf = (flow) => path`/flows/${flow.name}`;

/** @param {import("../routes.js").PageProps} props */
export default function Flows({ query }) {
  const prefix = /^[\w-]*$/.test(query.prefix ?? "") ? query.prefix : undefined;
  const list = usePages("v1/flows", { namePrefix: prefix, limit: 100 }, "flows", { everySeconds: 30 });
  const [started, setStarted] = useState(/** @type {any} */ (null));
  const [cursor, setCursor] = useState(/** @type {any} */ (null));
  useKeys("Flows", [
    { keys: "n", label: "New flow", run: () => (may("flows.write") ? go("/flows/-/new") : false) },
    { keys: "s", label: "Start the flow of the row", run: () => (cursor && may("executions.start") ? setStarted(cursor) : false) },
  ]);
  const columns = useMemo(() => columnsOf(setStarted), []);
  return html`<div class="page fills flows">
    <h1 class="hidden">Flows</h1>
    <search class="filters"><div class="fields">
      <${TextFilter} onChange=${(/** @type {string} */ text) => setQuery({ prefix: text })} name="prefix" label="Name begins with" value=${query.prefix ?? ""} pattern="[A-Za-z0-9_\\-]*" />
      <span class="grow"></span>
      ${may("flows.write") && html`<${Link} class="button primary" to="/flows/-/new"><${Icon} name="plus" size=${16} />New flow<//>`}
    </div></search>
    <div class="panel list-panel grow">
      <${Problem} error=${list.error} onRetry=${list.reload} />
      <${Table} label="Flows" columns=${columns} rows=${list.rows} keyOf=${(/** @type {any} */ flow) => flow.id} loading=${list.loading}
        done=${list.done} more=${list.more} onVisible=${list.onVisible} onOpen=${(/** @type {any} */ flow) => go(pathOf(flow))}
        onCursor=${setCursor} isDim=${(/** @type {any} */ flow) => list.gone.has(flow.id)}
        empty=${!list.error && html`<${Nothing} prefix=${prefix} />`} />
    </div>
    ${started && html`<${StartDialog} flow=${started.name} onStart=${(/** @type {string} */ input, /** @type {string} */ name) => start(started.name, input, name)} onClose=${() => setStarted(null)} />`}
  </div>`;
}

/** The input is sent as it was written, so that no number loses digits. @param {string} flow @param {string} input @param {string} name */
async function start(flow, input, name) {
  const text = `{"name": ${JSON.stringify(name)}, "input": ${input}}`;
  const execution = await api(path`v1/flows/${flow}/executions`, { method: "POST", text, type: "application/json" });
  go(path`/executions/${flow}/${execution.name}`);
}

/** @param {(flow: any) => void} onStart */
function columnsOf(onStart) {
  return [
    { key: "name", title: "Name", width: "minmax(140px, 2fr)", narrow: "minmax(0, 1fr)", render: (/** @type {any} */ flow) => html`<${Link} to=${pathOf(flow)} class="mono" title=${flow.name} tabindex="-1">${flow.name}<//>` },
    { key: "last", title: "Last run", width: "250px", narrow: "96px", render: (/** @type {any} */ flow) => html`<${LastRun} key=${flow.id} flow=${flow.name} />` },
    { key: "description", title: "Description", width: "minmax(0, 2fr)", narrow: /** @type {const} */ (false), render: (/** @type {any} */ flow) => html`<span class="muted" title=${flow.description}>${flow.description}</span>` },
    { key: "changed", title: "Changed", width: "136px", narrow: /** @type {const} */ (false), render: (/** @type {any} */ flow) => html`<${Time} at=${flow.lastModifiedTime} />` },
    { key: "start", title: html`<span class="hidden">Start</span>`, width: "72px", align: /** @type {const} */ ("right"), render: (/** @type {any} */ flow) =>
      may("executions.start") && html`<button type="button" class="small" tabindex="-1" onClick=${() => onStart(flow)} aria-label=${`Start ${flow.name}`}>Start</button>` },
  ];
}

/** One execution of the flow is read, and only while its row is on screen. @param {{flow: string}} props */
function LastRun({ flow }) {
  const { data } = useQuery(path`v1/flows/${flow}/executions`, { limit: 1 });
  const row = data?.executions[0];
  if (!data) return null;
  if (!row) return html`<span class="muted">never</span>`;
  return html`<${Link} to=${path`/executions/${flow}/${row.name}`} class="last-run" title=${row.name} tabindex="-1"><${ExecutionStatus} row=${row} /> <span class="muted"><${Time} at=${row.startedTime} /></span><//>`;
}

/** @param {{prefix: string | undefined}} props */
function Nothing({ prefix }) {
  if (prefix) return html`<${Empty}>No flow's name begins with <code>${prefix}</code>. <${Link} to="/flows">Show all<//><//>`;
  return html`<${Empty} command=${onThisServer("flowserver apply order.yaml")}>There are no flows yet. Write one in <${Link} to="/flows/-/new">the editor<//>, or send a file:<//>`;
}
