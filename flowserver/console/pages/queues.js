/** Queues and topics: how deep they are, what comes next, and what a person may send or delete. */
import { html, useState } from "../vendor/preact.js";
import { stylesheet } from "../css.js";
import { onThisServer } from "../commands.js";
import { Confirm, Copy, Empty, Loading, Problem, Tabs, Took } from "../parts/basics.js";
import { MessageDialog } from "../parts/message-dialog.js";
import { Messages } from "../parts/messages.js";
import { Facts, Side, Split } from "../parts/side.js";
import { Table } from "../parts/table.js";
import { path, setQuery } from "../routes.js";
import { api, may, usePages, useQuery } from "../store.js";

stylesheet(new URL("./queues.css", import.meta.url));

const PEEKED = 16;
const EVERY_SECONDS = 10;
const right = /** @type {const} */ ("right");

/** @param {any} row */
const keyOf = (row) => row.name;
/** @param {number} seconds @returns {string} "30 s", "4 d" */
function spell(seconds) {
  const units = /** @type {[string, number][]} */ ([["d", 86_400], ["h", 3_600], ["min", 60], ["s", 1]]);
  const [unit, size] = units.find(([, size]) => seconds >= size && seconds % size === 0) ?? ["s", 1];
  return `${(seconds / size).toLocaleString()} ${unit}`;
}

/** @param {any} row */
const Depth = ({ depth }) => (depth ? html`<span class=${depth.count ? "number" : "number muted"}>${depth.atLeast ? "≥ " : ""}${depth.count.toLocaleString()}</span>` : null);
/** @param {any} row */
const Name = (row) => html`<span class="mono" title=${row.name}>${row.name}</span>`;
const QUEUE_COLUMNS = [
  { key: "name", title: "Queue", width: "minmax(120px, 2fr)", render: Name },
  { key: "depth", title: "Messages", width: "84px", narrow: "72px", align: right, render: Depth },
  { key: "oldest", title: "Oldest", width: "84px", narrow: "72px", align: right, render: (/** @type {any} */ row) => html`<${Took} from=${row.oldestTime} />` },
  { key: "visibility", title: "Hidden while received", width: "150px", narrow: false, align: right, render: (/** @type {any} */ row) => spell(row.visibilitySeconds) },
  { key: "delay", title: "Delay", width: "84px", narrow: false, align: right, render: (/** @type {any} */ row) => spell(row.delaySeconds) },
  { key: "kept", title: "Kept", width: "84px", narrow: false, align: right, render: (/** @type {any} */ row) => spell(row.retentionSeconds) },
];
const TOPIC_COLUMNS = [
  { key: "name", title: "Topic", width: "minmax(120px, 2fr)", render: Name },
  { key: "depth", title: "To deliver", width: "96px", align: right, render: Depth },
  { key: "bytes", title: "Largest message", width: "140px", narrow: false, align: right, render: (/** @type {any} */ row) => `${row.messageBytesMax.toLocaleString()} B` },
];

/** @param {import("../routes.js").PageProps} props */
export default function Queues({ query }) {
  const isTopics = query.kind === "topics";
  const kind = isTopics ? "topics" : "queues";
  const list = usePages(`v1/${kind}`, { prefix: query.prefix, depth: true, limit: 100 }, kind);
  const close = () => setQuery({ name: null });
  const side = query.name && (isTopics ? html`<${Topic} key=${query.name} name=${query.name} onChanged=${list.reload} onClose=${close} />` : html`<${Queue} key=${query.name} name=${query.name} onChanged=${list.reload} onClose=${close} />`);
  const empty = isTopics
    ? html`<${Empty} command=${`curl -X PUT ${document.baseURI}topics/orders`}>There are no topics. Clients of the message service create them:<//>`
    : html`<${Empty} command=${`curl -X PUT ${document.baseURI}queues/work`}>There are no queues. Clients of the message service create them:<//>`;
  return html`<div class="page fills queues">
    <h1 class="hidden">Queues</h1>
    <div class="row">
      <${Tabs} label="Kind" value=${kind} onChange=${(/** @type {string} */ value) => setQuery({ kind: value === "topics" ? value : null, name: null })}
        tabs=${[{ value: "queues", label: "Queues" }, { value: "topics", label: "Topics" }]} />
      <input type="search" aria-label="Names that begin with" placeholder="Names that begin with" value=${query.prefix ?? ""}
        onChange=${(/** @type {any} */ event) => setQuery({ prefix: event.currentTarget.value, name: null })} />
      <span class="grow"></span>
      <button type="button" onClick=${list.reload}>Read again</button>
    </div>
    <${Problem} error=${list.error} onRetry=${list.reload} />
    <${Split} side=${side || null}>
      <section class="panel">
        <${Table} key=${kind} label=${isTopics ? "Topics" : "Queues"} columns=${isTopics ? TOPIC_COLUMNS : QUEUE_COLUMNS} rows=${list.rows} keyOf=${keyOf}
          loading=${list.loading} done=${list.done} current=${query.name} more=${list.more} onOpen=${(/** @type {any} */ row) => setQuery({ name: row.name })}
          empty=${!list.error && (query.prefix ? html`<p class="empty">No name begins so.</p>` : empty)} />
      </section>
    <//>
  </div>`;
}

/** @param {{name: string, onChanged: () => void, onClose: () => void}} props */
function Queue({ name, onChanged, onClose }) {
  const counted = useQuery(path`v1/queues/${name}`, undefined, { everySeconds: EVERY_SECONDS });
  const peeked = useQuery(path`v1/queues/${name}/messages`, { limit: PEEKED }, { everySeconds: EVERY_SECONDS });
  const [asked, setAsked] = useState(/** @type {"send" | "purge" | null} */ (null));
  const reload = () => Promise.all([counted.reload(), peeked.reload()]);
  const queue = counted.data;
  const messages = peeked.data?.messages ?? [];
  const send = async (/** @type {any} */ body) => {
    await api(path`v1/queues/${name}/messages`, { method: "POST", body });
    onChanged();
    await reload();
  };
  const purge = async () => {
    await api(path`v1/queues/${name}/purge`, { method: "POST" });
    onChanged();
    await reload();
  };
  const actions = html`<button type="button" disabled=${!may("queues.send")} onClick=${() => setAsked("send")}>Send…</button>
    <button type="button" class="danger" disabled=${!may("queues.purge")} onClick=${() => setAsked("purge")}>Purge…</button>
    <button type="button" onClick=${reload}>Read again</button>
    <${Copy} text=${onThisServer(`flowserver queues peek ${name}`)} label="Copy as command" />`;
  const oldest = messages.map((/** @type {any} */ each) => each.enqueuedTime).sort()[0];
  return html`<${Side} title=${html`<span class="mono">${name}</span>`} label=${`Queue ${name}`} onClose=${onClose} actions=${actions}>
    <${Problem} error=${counted.error ?? peeked.error} onRetry=${reload} />
    ${queue ? html`<div class="depths">
      <div><span class="count number">${queue.ready.toLocaleString()}</span><span class="muted">ready</span></div>
      <div><span class="count number">${queue.received.toLocaleString()}</span><span class="muted">received</span></div>
      <div><span class="count number">${queue.delayed.toLocaleString()}</span><span class="muted">delayed</span></div>
    </div>
    <${Facts} facts=${[
      ["Oldest of the next", oldest && html`<${Took} from=${oldest} />`],
      ["Hidden while received", spell(queue.visibilitySeconds)],
      ["Delay", spell(queue.delaySeconds)],
      ["Kept", spell(queue.retentionSeconds)],
      ["Receives wait", spell(queue.pollingSeconds)],
      ["Largest message", `${queue.messageBytesMax.toLocaleString()} B`],
    ]} />` : !counted.error && html`<${Loading} />`}
    <div><h3>Next messages</h3>
      ${messages.length ? html`<${Messages} messages=${messages} />` : peeked.data && html`<p class="muted">No message is ready.</p>`}</div>
    ${asked === "send" && html`<${MessageDialog} title=${`Send to ${name}`} kind="queue" onSend=${send} onClose=${() => setAsked(null)} />`}
    ${asked === "purge" && html`<${PurgeDialog} name=${name} onPurge=${purge} onClose=${() => setAsked(null)} />`}
  <//>`;
}

/** Deletes only what was named by hand. @param {{name: string, onPurge: () => Promise<void>, onClose: () => void}} props */
function PurgeDialog({ name, onPurge, onClose }) {
  const [typed, setTyped] = useState("");
  const purge = () => {
    if (typed.trim() !== name) throw new Error("This is not the queue's name.");
    return onPurge();
  };
  return html`<${Confirm} title=${`Purge ${name}`} action="Delete all messages" danger onConfirm=${purge} onClose=${onClose}>
    <p>All messages are deleted for good, those too that were received or are delayed. The queue stays.</p>
    <label class="field"><span>Type the queue's name</span><input value=${typed} spellcheck=${false} autocomplete="off" onInput=${(/** @type {any} */ event) => setTyped(event.currentTarget.value)} /></label>
  <//>`;
}

/** @param {{name: string, onChanged: () => void, onClose: () => void}} props */
function Topic({ name, onChanged, onClose }) {
  const { data, error, reload } = useQuery(path`v1/topics/${name}`, undefined, { everySeconds: EVERY_SECONDS });
  const [isAsked, setAsked] = useState(false);
  const publish = async (/** @type {any} */ body) => {
    await api(path`v1/topics/${name}/messages`, { method: "POST", body });
    onChanged();
    await reload();
  };
  const actions = html`<button type="button" disabled=${!may("topics.publish")} onClick=${() => setAsked(true)}>Publish…</button>
    <${Copy} text=${onThisServer(`flowserver topics get ${name}`)} label="Copy as command" />`;
  return html`<${Side} title=${html`<span class="mono">${name}</span>`} label=${`Topic ${name}`} onClose=${onClose} actions=${actions}>
    <${Problem} error=${error} onRetry=${reload} />
    ${data ? html`<div class="depths"><div><span class="count number">${data.undelivered.toLocaleString()}</span><span class="muted">not delivered yet</span></div></div>
      <div><h3>Subscriptions</h3>
        ${data.subscriptions.length ? html`<ul class="rows">${data.subscriptions.map((/** @type {string} */ each) => html`<li key=${each}><span class="mono">${each}</span></li>`)}</ul>` : html`<p class="muted">None: what is published goes nowhere.</p>`}</div>`
      : !error && html`<${Loading} />`}
    ${isAsked && html`<${MessageDialog} title=${`Publish to ${name}`} kind="topic" onSend=${publish} onClose=${() => setAsked(false)} />`}
  <//>`;
}
