/** The schedules of a flow, with the time of the next start of each. */
import { onThisServer } from "../../commands.js";
import { Empty, Loading, Panel, Problem, Status, Time } from "../../parts/basics.js";
import { Link, path } from "../../routes.js";
import { useQuery } from "../../store.js";
import { html } from "../../vendor/preact.js";

const SHOWN_MAX = 50;

/** @param {{flow: string}} props */
export function Schedules({ flow }) {
  const answer = useQuery(path`v1/flows/${flow}/schedules`, { limit: SHOWN_MAX }, { everySeconds: 30 });
  const rows = answer.data?.schedules ?? [];
  return html`<${Panel} class="list" title="Schedules" actions=${rows.length > 0 && html`<${Link} to="/schedules" query=${{ flow }}>All<//>`}>
    <${Problem} error=${answer.error} onRetry=${answer.reload} />
    ${!answer.data && !answer.error && html`<${Loading} />`}
    ${answer.data && !rows.length && html`<${Empty} command=${onThisServer(`flowserver schedules create ${flow}/hourly --every 1h`)}>Nothing starts it by itself.<//>`}
    <ul>
      ${rows.map((/** @type {any} */ row) => html`<li key=${row.name}>
        <span class="mono cut" title=${row.description || row.name}>${row.name}</span>
        <span class="grow cut muted" title=${`${row.cronExpression} ${row.timeZone}`}><code>${row.cronExpression}</code> ${row.cronExpression.startsWith("@") ? "" : row.timeZone}</span>
        ${row.qualifier && html`<span class="tag mono">${row.qualifier}</span>`}
        ${row.enabled
          ? html`<span>${row.nextTime ? html`next <${Time} at=${row.nextTime} />` : html`<span class="muted">no more starts</span>`}</span>`
          : html`<span title=${row.note}><${Status} status="Stopped" label="Paused" /></span>`}
      </li>`)}
    </ul>
  <//>`;
}
