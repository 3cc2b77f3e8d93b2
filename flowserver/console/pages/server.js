/** The server itself: its nodes, its keys, and invocations that it has set aside. */
import { html, useState } from "../vendor/preact.js";
import { stylesheet } from "../css.js";
import { Confirm, Copy, Empty, Panel, Problem, Status, Time } from "../parts/basics.js";
import { Facts } from "../parts/side.js";
import { Table } from "../parts/table.js";
import { Link, path } from "../routes.js";
import { api, may, mayRead, permissions, usePages, useQuery } from "../store.js";

stylesheet(new URL("./server.css", import.meta.url));

const EVERY_SECONDS = 10;
const SILENT_MS = 30_000;
const right = /** @type {const} */ ("right");

/** The node that answers is alive; alone on its database it sends no heartbeat. @param {{node: any, now: number, isThis: boolean}} props */
function NodeState({ node, now, isThis }) {
  if (node.leaving) return html`<${Status} status="Stopped" label="Leaving" />`;
  const isSilent = !isThis && now - Date.parse(node.heartbeatTime) > SILENT_MS;
  return isSilent ? html`<${Status} status="Failed" label="Silent" />` : html`<${Status} status="Succeeded" label="Alive" />`;
}

export default function Server() {
  return html`<div class="page server">
    <h1 class="hidden">Server</h1>
    <${About} />
    ${mayRead("v1/nodes") && html`<${Nodes} />`}
    ${mayRead("v1/invocations/parked") && html`<${Parked} />`}
    <${Keys} />
  </div>`;
}

function About() {
  const { data } = useQuery("v1/nodes", { limit: 200 }, { everySeconds: EVERY_SECONDS });
  const { key, open, may: names } = permissions.value;
  return html`<${Panel} title="This server">
    <div class="body">
      <${Facts} facts=${[
        ["Address", html`<span class="row nowrap"><code>${document.baseURI}</code><${Copy} text=${document.baseURI} /></span>`],
        ["Version", data && html`<code>${data.version}</code>`],
        ["Answered by", data && html`<span>node <code>${data.thisNode}</code></span>`],
        ["You are", key !== null ? html`<span>the key <bdi class="mono">${key}</bdi></span>` : open ? "anyone: without keys, the server answers every program on its machine" : null],
        ["You may", names === null ? "everything" : html`<details><summary>${names.length} permissions</summary><span class="mono">${names.join(", ")}</span></details>`],
        ["For programs", html`<span><a href="docs">API documentation</a>, <a href="v1/openapi.json">OpenAPI</a>, <a href="metrics">metrics</a></span>`],
      ]} />
    </div>
  <//>`;
}

const NODE_COLUMNS = [
  { key: "state", title: "State", width: "104px", render: (/** @type {any} */ row) => html`<${NodeState} ...${row} />` },
  { key: "id", title: "Node", width: "minmax(0, 2fr)", render: (/** @type {any} */ { node, isThis }) => html`<span class="mono" title=${node.id}>${node.id}</span>${isThis && html` <span class="muted">answers</span>`}` },
  { key: "since", title: "Since", width: "132px", narrow: false, align: right, render: (/** @type {any} */ { node }) => html`<${Time} at=${node.startedTime} />` },
  { key: "heard", title: "Last heard", width: "132px", narrow: "104px", align: right, render: (/** @type {any} */ { node, isThis }) => (isThis ? html`<span class="muted">now</span>` : html`<${Time} at=${node.heartbeatTime} />`) },
];

function Nodes() {
  const { data, error, loading, reload } = useQuery("v1/nodes", { limit: 200 }, { everySeconds: EVERY_SECONDS });
  const now = Date.now();
  const rows = (data?.nodes ?? []).map((/** @type {any} */ node) => ({ node, now, isThis: node.id === data.thisNode }));
  return html`<${Panel} title="Nodes">
    <${Problem} error=${error} onRetry=${reload} />
    <${Table} label="Nodes" columns=${NODE_COLUMNS} rows=${rows} keyOf=${(/** @type {any} */ row) => row.node.id} loading=${loading} done=${true} empty=${!error && html`<p class="empty">No node is registered.</p>`} />
    <p class="foot muted">A node that is silent for some seconds is taken for dead: others take its work over.</p>
  <//>`;
}

/** @param {any} each */
const functionOf = (each) => `${each.service}${each.qualifier && `.${each.qualifier}`}/${each.function}`;

function Parked() {
  const list = usePages("v1/invocations/parked", { limit: 100 }, "invocations");
  const [asked, setAsked] = useState(/** @type {{what: "restart" | "stop", row: any} | null} */ (null));
  const change = async () => {
    if (!asked) return;
    const { service, qualifier, function: name, invocationId } = asked.row;
    const of = qualifier ? `${service}.${qualifier}` : service;
    await api(path`v1/functions/${of}/${name}/invocations/${invocationId}/` + asked.what, { method: "POST" });
    list.reload();
  };
  const columns = [
    { key: "id", title: "Invocation", width: "minmax(0, 1.2fr)", render: (/** @type {any} */ row) => html`<span class="mono" title=${row.invocationId}>${row.invocationId}</span>` },
    { key: "function", title: "Function", width: "minmax(0, 1.2fr)", render: (/** @type {any} */ row) => html`<span class="mono" title=${functionOf(row)}>${functionOf(row)}</span>` },
    { key: "by", title: "Submitted by", width: "minmax(0, 1fr)", narrow: false, render: (/** @type {any} */ row) => row.execution ? html`<${Link} class="mono" to=${path`/executions/${row.flow}/${row.execution}`}>${row.flow}/${row.execution}<//>` : html`<span class="muted">a program</span>` },
    { key: "why", title: "Why", width: "minmax(0, 1.4fr)", narrow: false, render: (/** @type {any} */ row) => html`<bdi title=${row.parkedError}>${row.parkedError}</bdi>` },
    { key: "act", title: html`<span class="hidden">Actions</span>`, width: "132px", align: right, render: (/** @type {any} */ row) => html`
      <button type="button" class="small" disabled=${!may("invocations.restart")} onClick=${() => setAsked({ what: "restart", row })}>Restart</button>
      <button type="button" class="small danger" disabled=${!may("invocations.stop")} onClick=${() => setAsked({ what: "stop", row })}>Stop</button>` },
  ];
  return html`<${Panel} title="Parked invocations" actions=${html`<button type="button" onClick=${list.reload}>Read again</button>`}>
    <${Problem} error=${list.error} onRetry=${list.reload} />
    <${Table} label="Parked invocations" columns=${columns} rows=${list.rows} keyOf=${(/** @type {any} */ row) => `${functionOf(row)}/${row.invocationId}`} loading=${list.loading} done=${list.done} more=${list.more}
      empty=${!list.error && html`<p class="empty">The server has set no asynchronous invocation aside. Parked executions are <${Link} to="/executions" query=${{ status: "parked" }}>in their list<//>.</p>`} />
    ${asked && html`<${Confirm} title=${`${asked.what === "stop" ? "Stop" : "Restart"} ${asked.row.invocationId}`} action=${asked.what === "stop" ? "Stop" : "Restart"} danger=${asked.what === "stop"} onConfirm=${change} onClose=${() => setAsked(null)}>
      <p>${asked.what === "stop" ? "It ends as stopped, for good." : "The server tries to go on. If what was wrong still is, it is parked again."}</p><//>`}
  <//>`;
}

/** @param {string | null} instant */
const isOver = (instant) => instant !== null && Date.parse(instant) <= Date.now();

const KEY_COLUMNS = [
  { key: "state", title: "State", width: "104px", render: (/** @type {any} */ row) => row.disabledTime || isOver(row.expiresTime) ? html`<${Status} status="Stopped" label=${row.disabledTime ? "Disabled" : "Expired"} />` : html`<${Status} status="Succeeded" label="Enabled" />` },
  { key: "label", title: "Label", width: "minmax(0, 1.4fr)", render: (/** @type {any} */ row) => row.label ? html`<bdi title=${row.label}>${row.label}</bdi>` : html`<span class="muted">–</span>` },
  { key: "role", title: "Role", width: "minmax(0, 1fr)", render: (/** @type {any} */ row) => html`<span>${row.role}${row.flows && html` <code>${row.flows}…</code>`}</span>` },
  { key: "id", title: "Id", width: "minmax(0, 1.4fr)", render: (/** @type {any} */ row) => html`<code title=${row.id}>${row.id}</code>` },
  { key: "created", title: "Created", width: "132px", narrow: false, align: right, render: (/** @type {any} */ row) => html`<${Time} at=${row.createdTime} />` },
  { key: "disabled", title: "Disabled", width: "132px", narrow: false, align: right, render: (/** @type {any} */ row) => html`<${Time} at=${row.disabledTime} />` },
];

function Keys() {
  const list = usePages("v1/keys", { limit: 200 }, "keys");
  if (!may("keys.read")) return null;
  const toAudit = may("audit.read") && html`<${Link} to="/audit">Audit: who did what<//>`;
  return html`<${Panel} title="Access keys" actions=${toAudit}>
    <${Problem} error=${list.error} onRetry=${list.reload} />
    <${Table} label="Access keys" columns=${KEY_COLUMNS} rows=${list.rows} keyOf=${(/** @type {any} */ row) => row.id} loading=${list.loading} done=${list.done} more=${list.more}
      empty=${!list.error && html`<${Empty} command="flowserver keys create --label laptop">The server has no keys: every program on its machine may call it. The first key closes it:<//>`} />
    <p class="foot muted">Keys are created and disabled on the server's machine: <${Command} text="flowserver keys create --label LABEL" /> <${Command} text="flowserver keys disable ID" /></p>
  <//>`;
}

/** @param {{text: string}} props */
function Command({ text }) {
  return html`<span class="command"><code>${text}</code><${Copy} text=${text} /></span>`;
}
