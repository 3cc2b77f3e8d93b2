/** A flow: its runs, its definition with the graph beside it, versions, aliases, schedules; start and publish. */
import { stylesheet } from "../css.js";
import { useKeys } from "../keys.js";
import { onThisServer } from "../commands.js";
import { Confirm, Empty, Loading, Panel, Problem, Time } from "../parts/basics.js";
import { RunsChart } from "../parts/runs-chart.js";
import { go, href, Link, path, setQuery } from "../routes.js";
import { api, may, useQuery } from "../store.js";
import { html, useState } from "../vendor/preact.js";
import { Aliases } from "./flow/aliases.js";
import { Definition } from "./flow/definition.js";
import { PublishSaved } from "./flow/publishing.js";
import { Schedules } from "./flow/schedules.js";
import { StartFlow } from "./flow/start.js";
import { Versions } from "./flow/versions.js";

stylesheet(new URL("./flow.css", import.meta.url));

const RUNS = 50;
const RUNNING_SECONDS = 3;
const IDLE_SECONDS = 15;
const LISTED_MAX = 100;

/** @param {import("../routes.js").PageProps} props */
export default function Flow({ params, query }) {
  const name = params.flow;
  const flow = useQuery(path`v1/flows/${name}`, undefined, { everySeconds: 30 });
  const chosen = /^[1-9][0-9]{0,8}$/.test(query.version ?? "") ? query.version : null;
  const version = useQuery(chosen && path`v1/flows/${name}/versions/${chosen}`);
  const versions = useQuery(path`v1/flows/${name}/versions`, { limit: LISTED_MAX }, { everySeconds: 30 });
  const aliases = useQuery(path`v1/flows/${name}/aliases`, { limit: LISTED_MAX }, { everySeconds: 30 });
  const [open, setOpen] = useState(/** @type {"start" | "publish" | "delete" | null} */ (null));
  const close = () => setOpen(null);
  useKeys("Flow", [
    { keys: "s", label: "Start", run: () => (may("executions.start") ? setOpen("start") : false) },
    { keys: "e", label: "Edit", run: () => (may("flows.write") ? go(path`/flows/${name}/edit`) : false) },
    { keys: "p", label: "Publish a version", run: () => (may("versions.publish") ? setOpen("publish") : false) },
  ]);
  if (!flow.data) {
    const isNone = flow.error?.status === 404 && may("flows.write");
    return html`<div class="page"><${Problem} error=${flow.error} onRetry=${flow.reload} />${!flow.error && html`<${Loading} />`}
      ${isNone && html`<p><${Link} to="/flows/-/new">Write a new flow<//></p>`}</div>`;
  }
  const remove = async () => {
    await api(path`v1/flows/${name}`, { method: "DELETE" });
    go("/flows");
  };
  const { description, lastModifiedTime, retentionDays, onRetriesExhausted, definition } = flow.data;
  return html`<div class="page flow">
    <header>
      <div class="grow">
        <h1 class="mono cut" title=${name}>${name}</h1>
        ${description && html`<p class="about" title=${description}>${description}</p>`}
        <p class="muted facts">
          <span>changed <${Time} at=${lastModifiedTime} /></span>
          ${retentionDays !== null && html`<span>${retentionDays ? `runs are kept for ${retentionDays} days` : "runs are kept for ever"}</span>`}
          ${onRetriesExhausted === "waitForRedrive" && html`<span>steps that fail for good wait for a redrive</span>`}
        </p>
      </div>
      <div class="row">
        <${Link} class="button" to="/executions" query=${{ flow: name }}>Executions<//>
        ${may("flows.delete") && html`<button type="button" class="quiet" onClick=${() => setOpen("delete")}>Delete…</button>`}
        <button type="button" disabled=${!may("versions.publish")} onClick=${() => setOpen("publish")}>Publish…</button>
        ${may("flows.write") && html`<${Link} class="button" to=${path`/flows/${name}/edit`}>Edit<//>`}
        <button type="button" class="primary" disabled=${!may("executions.start")} onClick=${() => setOpen("start")}>Start…</button>
      </div>
    </header>
    <${Problem} error=${flow.error} onRetry=${flow.reload} />
    <${Runs} flow=${name} />
    <${Definition} flow=${name} saved=${definition} version=${chosen} published=${version} against=${query.against ?? null}
      step=${query.step ?? null} versions=${versions.data?.versions ?? []} onQuery=${setQuery} />
    <div class="lists">
      <${Versions} flow=${name} answer=${versions} aliases=${aliases.data?.aliases ?? []} chosen=${chosen} onPublish=${() => setOpen("publish")} />
      <${Aliases} flow=${name} answer=${aliases} versions=${versions.data?.versions ?? []} />
      <${Schedules} flow=${name} />
    </div>
    ${open === "start" && html`<${StartFlow} flow=${name} definition=${definition} versions=${versions.data?.versions ?? []} aliases=${aliases.data?.aliases ?? []} onClose=${close} />`}
    ${open === "publish" && html`<${PublishSaved} flow=${name} onDone=${versions.reload} onClose=${close} />`}
    ${open === "delete" &&
    html`<${Confirm} title=${`Delete ${name}`} action="Delete the flow" danger=${true} onConfirm=${remove} onClose=${close}>
      <p>Its running executions are stopped, and its executions, versions, aliases and schedules can no longer be read.</p>
    <//>`}
  </div>`;
}

/** @param {{flow: string}} props */
function Runs({ flow }) {
  const [isBusy, setBusy] = useState(false);
  const runs = useQuery(path`v1/flows/${flow}/executions`, { limit: RUNS }, { everySeconds: isBusy ? RUNNING_SECONDS : IDLE_SECONDS });
  const rows = /** @type {import("../parts/runs-chart.js").Run[]} */ (runs.data?.executions ?? []);
  const running = rows.filter((run) => run.status === "Running").length;
  const failed = rows.filter((run) => run.status === "Failed" || run.status === "TimedOut").length;
  if (isBusy !== running > 0) setBusy(running > 0);
  const pathOf = (/** @type {{name: string}} */ run) => path`/executions/${flow}/${run.name}`;
  const counts = [running && `${running} running`, failed && `${failed} failed`].filter(Boolean).join(", ");
  return html`<${Panel} class="runs" title=${rows.length === 1 ? "Last run" : `Last ${rows.length || ""} runs`}
    actions=${html`${counts && html`<span class="muted">${counts}</span>`}`}>
    <${Problem} error=${runs.error} onRetry=${runs.reload} />
    ${rows.length > 0 && html`<${RunsChart} runs=${rows} now=${Date.now()} hrefOf=${(/** @type {any} */ run) => href(pathOf(run))} onOpen=${(/** @type {any} */ run) => go(pathOf(run))} />`}
    ${runs.data && !rows.length && html`<${Empty} command=${onThisServer(`flowserver start ${flow} --input '{}'`)}>It has not run yet. Start it above, or with:<//>`}
  <//>`;
}
