/** Tests beside the text: written here or opened from a file, run on the server, with what differs and what they reach. */
import { Copy, Empty, Problem, Shape } from "../../parts/basics.js";
import { exactDuration } from "../../parts/durations.js";
import { Editor } from "../../parts/editor.js";
import { Problems } from "../../parts/problems.js";
import { html, useEffect, useRef, useState } from "../../vendor/preact.js";
import { FILE_BYTES_MAX, firstTests } from "./testing.js";

/** @typedef {import("./testing.js").Testing} Testing */
/** @typedef {import("./testing.js").TestResult} TestResult */
/** @typedef {import("./testing.js").TestFinding} TestFinding */
/** @typedef {import("./testing.js").Coverage} Coverage */
/** @typedef {{line: number, column?: number}} Place */

/**
 * @param {{testing: Testing, flow: string | null, graph: any, isBack: boolean, onFocused: () => void, onLine: (line: number) => void,
 *   onTest: (test: TestResult) => void}} props
 *   `isBack`: the reader comes back from the path of a test, which takes the focus; `onLine`: a line of the definition was chosen; `onTest`: a test, whose path is to be shown
 */
export function Tests({ testing, flow, graph, isBack, onFocused, onLine, onTest }) {
  const [jump, setJump] = useState(/** @type {Place | null} */ (null));
  const { text, write, start, isRunning, run, error } = testing;
  const mistakes = run && run.tests === text ? run.report.mistakes : [];
  const press = (/** @type {KeyboardEvent} */ event) => {
    if (event.key !== "Enter" || !(event.ctrlKey || event.metaKey)) return;
    event.preventDefault();
    event.stopPropagation();
    if (text) start();
  };
  return html`<div class="tests" onKeyDownCapture=${press}>
    <div class="row doing">
      <button type="button" class="primary" disabled=${!text || isRunning} onClick=${start} title="Ctrl Enter" aria-keyshortcuts="Control+Enter">Run tests</button>
      <${OpenFile} onText=${write} />
      ${text && html`<${Copy} text=${text} label="Copy" />`}
    </div>
    ${
      text
        ? html`<div class="text"><${Editor} text=${text} label="Tests" onChange=${write} findings=${mistakes} jump=${jump} /></div>`
        : html`<${Empty}>There are no tests here. They run this definition with mocked calls: nothing is called.<//>
            <p class="row centred"><button type="button" onClick=${() => write(firstTests(flow, graph))}>Write the first test</button></p>`
    }
    <div class="outcome">
      <p role="status"><strong>${summaryOf(testing)}</strong></p>
      <${Problem} error=${error} />
      ${mistakes.length > 0 && html`<${Problems} findings=${mistakes} label="Mistakes of the tests" onJump=${setJump} />`}
      ${run && html`<${Results} testing=${testing} isBack=${isBack} onFocused=${onFocused} onJump=${setJump} onLine=${onLine} onTest=${onTest} />`}
    </div>
  </div>`;
}

/** @param {Testing} testing */
function summaryOf({ isRunning, run, isOld }) {
  if (isRunning) return "Running…";
  if (!run) return "";
  const { tests, mistakes, coverage } = run.report;
  if (mistakes.length) return "The tests have mistakes, so none has run.";
  const failed = tests.filter((test) => test.outcome === "failed").length;
  const counts = [`${tests.length - failed} passed`, failed && `${failed} failed`, coverage && `coverage ${Math.floor(coverage.percent)} %`];
  return counts.filter(Boolean).join(", ") + (isOld ? "; the text has changed since" : "");
}

/**
 * @param {{testing: Testing, isBack: boolean, onFocused: () => void, onJump: (place: Place) => void, onLine: (line: number) => void,
 *   onTest: (test: TestResult) => void}} props
 */
function Results({ testing, isBack, onFocused, onJump, onLine, onTest }) {
  const { run, test: chosen } = testing;
  const last = useRef(/** @type {HTMLButtonElement | null} */ (null));
  useEffect(() => {
    if (isBack) last.current?.focus();
    onFocused();
  }, []);
  if (!run) return null;
  const { tests, warnings, coverage } = run.report;
  return html`
    <ol class="results" aria-label="Results">
      ${tests.map((test) => html`<li key=${test.name}>
        <button type="button" class="quiet" ref=${test === chosen ? last : undefined} title="Show its path in the graph" onClick=${() => onTest(test)}>
          <${Shape} status=${test.outcome === "passed" ? "Succeeded" : "Failed"} />
          <span class="hidden">${test.outcome}</span>
          <span class="grow">${test.name}</span>
          <span class="muted">${test.calls} ${test.calls === 1 ? "call" : "calls"} · ${exactDuration(test.tookSeconds * 1_000)}</span>
        </button>
        <${Findings} findings=${test.failures} tone="fail" onJump=${onJump} onLine=${onLine} />
        <${Findings} findings=${test.warnings} tone="wait" onJump=${onJump} onLine=${onLine} />
      </li>`)}
    </ol>
    <${Findings} findings=${warnings} tone="wait" onJump=${onJump} onLine=${onLine} />
    ${coverage && html`<${Unreached} coverage=${coverage} onLine=${onLine} />`}
  `;
}

/** @param {{findings: TestFinding[], tone: "fail" | "wait", onJump: (place: Place) => void, onLine: (line: number) => void}} props */
function Findings({ findings, tone, onJump, onLine }) {
  return findings.map(
    (found) => html`<div class="difference tone-${tone}">
      <button type="button" class="quiet" onClick=${() => onJump(found)}>
        <span class="mono muted">${found.line}:${found.column}</span>
        <span class="grow">${found.message}${found.hint && html`<span class="muted"> – ${found.hint}</span>`}</span>
      </button>
      ${found.details.length > 0 && html`<pre class="mono" tabindex="0" aria-label="Differences">${found.details.join("\n")}</pre>`}
      ${found.definitionLine && html`<button type="button" class="quiet" onClick=${() => onLine(Number(found.definitionLine))}>line ${found.definitionLine} of the definition</button>`}
    </div>`,
  );
}

/** @param {{coverage: Coverage, onLine: (line: number) => void}} props */
function Unreached({ coverage, onLine }) {
  const notes = [
    ...coverage.notReached.map((each) => ({ ...each, what: `not reached: ${each.what}` })),
    ...coverage.nulls.map((each) => ({ ...each, what: `null: ${each.what}` })),
  ];
  if (!notes.length) return null;
  return html`<details class="unreached">
    <summary>${notes.length} ${notes.length === 1 ? "place" : "places"} of the definition that the tests do not cover</summary>
    <ol class="problems" aria-label="Not covered">
      ${notes.map((each) => html`<li key=${`${each.line}:${each.column}:${each.what}`}><button type="button" class="quiet" onClick=${() => onLine(each.line)}>
        <span class="mono muted">${each.line}:${each.column}</span><span class="grow">${each.what}</span>
      </button></li>`)}
    </ol>
  </details>`;
}

/** @param {{onText: (text: string) => void}} props */
function OpenFile({ onText }) {
  const input = useRef(/** @type {HTMLInputElement | null} */ (null));
  const [problem, setProblem] = useState("");
  const open = async () => {
    const file = input.current?.files?.[0];
    if (!file) return;
    const isLarge = file.size > FILE_BYTES_MAX;
    setProblem(isLarge ? `${file.name} is larger than 1 MiB.` : "");
    if (!isLarge) onText(await file.text());
    if (input.current) input.current.value = ""; // the same file can be opened again
  };
  return html`
    <button type="button" onClick=${() => input.current?.click()}>Open file…</button>
    <input ref=${input} type="file" accept=".yaml,.yml,.json" hidden aria-label="File of tests" onChange=${open} />
    ${problem && html`<span role="alert">${problem}</span>`}
  `;
}
