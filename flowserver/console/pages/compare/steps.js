/** The table of steps: what each did in both runs, and how long it took. */
import { Empty, Panel, Status } from "../../parts/basics.js";
import { duration } from "../../parts/durations.js";
import { html } from "../../vendor/preact.js";

/** @typedef {import("./rows.js").Row} Row */
/** @typedef {import("./rows.js").Step} Step */

/**
 * @param {{rows: Row[], chosen: string | null, onChoose: (path: string | null) => void, isOnlyDifferent: boolean,
 *   onOnlyDifferent: (only: boolean) => void, isCut: boolean}} props  `isCut`: a run has more steps than were read
 */
export function Steps({ rows, chosen, onChoose, isOnlyDifferent, onOnlyDifferent, isCut }) {
  const different = rows.filter((row) => row.differences.length);
  const shown = isOnlyDifferent ? different : rows;
  const longest = Math.max(1, ...rows.map((row) => Math.max(row.msA, row.msB)));
  const count = different.length === 0 ? "the same path" : `${different.length} of ${rows.length} steps differ`;
  return html`<${Panel} title=${html`Steps <span class="muted" role="status">${count}</span>`} class="compare-steps"
    actions=${html`<label class="row"><input type="checkbox" checked=${isOnlyDifferent}
      onChange=${(/** @type {any} */ event) => onOnlyDifferent(event.currentTarget.checked)} /> Only differences</label>`}>
    ${isCut && html`<p class="note muted">A run has more than ${rows.length} steps. The first are compared.</p>`}
    ${
      shown.length === 0
        ? html`<${Empty}>${rows.length ? "Both runs took the same path, with the same results." : "No step was entered yet."}<//>`
        : html`<table>
            <thead><tr><th scope="col">Step</th><th scope="col">A</th><th scope="col">B</th><th scope="col">Took</th><th scope="col">Difference</th></tr></thead>
            <tbody>${shown.map((row) => html`<${Line} key=${row.path} row=${row} longest=${longest} isChosen=${row.path === chosen} onChoose=${onChoose} />`)}</tbody>
          </table>`
    }
  <//>`;
}

/** @param {{row: Row, longest: number, isChosen: boolean, onChoose: (path: string | null) => void}} props */
function Line({ row, longest, isChosen, onChoose }) {
  const { path, a, b, differences, note } = row;
  return html`<tr class=${`${differences.length ? "different" : ""} ${isChosen ? "chosen" : ""}`}>
    <th scope="row"><button type="button" class="quiet mono" aria-pressed=${String(isChosen)} title="Compare its input and output"
      onClick=${() => onChoose(isChosen ? null : path)}><bdi>${path}</bdi></button></th>
    <td data-run="A"><${Outcome} step=${a} /></td>
    <td data-run="B"><${Outcome} step=${b} /></td>
    <td class="bars"><${Bar} run="A" step=${a} ms=${row.msA} longest=${longest} /><${Bar} run="B" step=${b} ms=${row.msB} longest=${longest} /></td>
    <td class="why">${differences.map((each) => html`<div><bdi>${each}</bdi></div>`)}${note && html`<div class="muted">${note}</div>`}</td>
  </tr>`;
}

/** @param {{step: Step | null}} props */
function Outcome({ step }) {
  if (!step) return html`<${Status} status="NotReached" />`;
  const { iterations } = step;
  return html`<span class="outcome"><${Status} status=${step.status} />
    ${step.attempts > 1 && html`<span class="muted" title=${`${step.attempts} attempts`}>×${step.attempts}</span>`}
    ${iterations && html`<span class="muted number" title="iterations done, of all">${iterations.done}/${iterations.total}</span>`}</span>`;
}

/** @param {{run: string, step: Step | null, ms: number, longest: number}} props */
function Bar({ run, step, ms, longest }) {
  if (!step) return html`<div class="bar none"><span class="of">${run}</span><span class="muted">–</span></div>`;
  return html`<div class="bar bar-${run}">
    <span class="of">${run}</span>
    <span class="lane"><span class="length" style=${{ width: `${(100 * ms) / longest}%` }}></span></span>
    <span class="number">${duration(ms)}</span>
  </div>`;
}
