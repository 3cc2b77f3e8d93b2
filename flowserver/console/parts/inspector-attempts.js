/** The attempts of a task, each with its times and its end. */
import { html } from "../vendor/preact.js";
import { Copy, Status, Time, Took } from "./basics.js";
import { Cause } from "./inspector-cause.js";

/** @typedef {import("./step-story.js").Attempt} Attempt */

/** @param {{attempts: Attempt[], until: string | null, onEvent: (id: number) => void}} props */
export function Attempts({ attempts, until, onEvent }) {
  if (!attempts.length) return null;
  const last = attempts[attempts.length - 1];
  return html`<section class="inspector-attempts" aria-label="Attempts">
    <h3>${attempts.length === 1 ? "One attempt" : `${attempts.length} attempts`}</h3>
    <ol>${attempts.map((each) => html`<li key=${each.number}>
      <div class="row">
        <${Status} status=${each.status === "Submitted" ? "Waiting" : each.status} label=${each.status === "Submitted" ? "Submitted" : undefined} />
        <span class="muted"><${Time} at=${each.startedAt ?? each.scheduledAt} /> · <${Took} from=${each.startedAt ?? each.scheduledAt} to=${each.endedAt ?? until} /></span>
        ${each.eventId > 0 && html`<button type="button" class="quiet link" onClick=${() => onEvent(each.eventId)}>event ${each.eventId}</button>`}
      </div>
      ${each.error && each !== last && html`<details><summary class="mono">${each.error}</summary><${Cause} error=${each.error} cause=${each.cause} /></details>`}
      ${each.error && each === last && html`<span class="mono muted">${each.error}</span>`}
      ${each.requestId && html`<div class="inspector-id muted"><span>request</span> <code class="cut" title=${each.requestId}>${each.requestId}</code><${Copy} text=${each.requestId} /></div>`}
    </li>`)}</ol>
  </section>`;
}
