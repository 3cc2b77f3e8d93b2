/** Executions of all flows. */
import { html } from "../vendor/preact.js";
import { Empty, Status, Time, Took } from "../parts/basics.js";
import { Table } from "../parts/table.js";
import { Link, go, path } from "../routes.js";
import { usePages } from "../store.js";

/** @param {import("../routes.js").PageProps} props */
export default function Executions({ query }) {
  const list = usePages("v1/executions", { flow: query.flow, limit: 100 }, "executions", { everySeconds: 5 });
  const place = (/** @type {any} */ row) => path`/executions/${row.flowName}/${row.name}`;
  const columns = [
    { key: "status", title: "Status", width: "120px", render: (/** @type {any} */ row) => html`<${Status} status=${row.status} />` },
    { key: "name", title: "Name", render: (/** @type {any} */ row) => html`<${Link} to=${place(row)} class="mono">${row.name}<//>` },
    { key: "flow", title: "Flow", render: (/** @type {any} */ row) => row.flowName },
    { key: "started", title: "Started", width: "130px", render: (/** @type {any} */ row) => html`<${Time} at=${row.startedTime} />` },
    { key: "took", title: "Took", width: "90px", render: (/** @type {any} */ row) => html`<${Took} from=${row.startedTime} to=${row.stoppedTime} />` },
  ];
  return html`<div class="page fills">
    <${Table} label="Executions" columns=${columns} rows=${list.rows} keyOf=${(/** @type {any} */ row) => row.id} loading=${list.loading}
      onOpen=${(/** @type {any} */ row) => go(place(row))} more=${list.more} done=${list.done}
      empty=${html`<${Empty} command="flowserver start FLOW">No executions yet.<//>`} />
  </div>`;
}
