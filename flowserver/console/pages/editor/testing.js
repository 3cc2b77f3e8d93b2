/** The tests of the definition that is written: their text, which the browser keeps, and what has come of them. */
import { ofBrowser } from "../../memory.js";
import { ApiError, api } from "../../store.js";
import { useEffect, useRef, useState } from "../../vendor/preact.js";

/**
 * @typedef {{message: string, line: number, column: number, endLine: number, endColumn: number, details: string[],
 *   definitionLine: number | null, hint: string | null}} TestFinding
 * @typedef {{name: string, line: number, outcome: "passed" | "failed", status: string, error: string | null, cause: string | null,
 *   failedStep: string | null, output: any, path: string[] | null, steps: any[] | null, calls: number, tookSeconds: number,
 *   failures: TestFinding[], warnings: TestFinding[]}} TestResult
 * @typedef {{line: number, column: number, what: string}} CoverageNote
 * @typedef {{percent: number, notReached: CoverageNote[], nulls: CoverageNote[]}} Coverage
 * @typedef {{passed: boolean, mistakes: import("../../parts/editor.js").Finding[], tests: TestResult[], warnings: TestFinding[],
 *   coverage: Coverage | null}} Report
 * @typedef {{report: Report, definition: string, tests: string}} Run  the report, and the texts that it is about
 * @typedef {ReturnType<typeof useTesting>} Testing
 */

/** A longer text of tests is not kept by the browser. */
const KEPT_MAX = 200_000;

/** A longer file is not opened: the server would refuse it. */
export const FILE_BYTES_MAX = 1_048_576;

/** No flow has this name: it stands for one that has none yet. */
const NEW = "-";

/** @param {string | null} flow */
const keyOf = (flow) => `flowserver.tests.${flow ?? NEW}`;

/** The tests that were written before the flow had a name are those of the flow. @param {string} flow */
export function keepTestsAs(flow) {
  const text = ofBrowser.get(keyOf(null));
  if (text === null) return;
  ofBrowser.set(keyOf(flow), text);
  ofBrowser.set(keyOf(null), null);
}

/**
 * @param {string | null} flow null: it has no name yet
 * @param {string} definition the text of the definition as it is now
 */
export function useTesting(flow, definition) {
  const [text, setText] = useState(() => ofBrowser.get(keyOf(flow)) ?? "");
  const [run, setRun] = useState(/** @type {Run | null} */ (null));
  const [error, setError] = useState(/** @type {any} */ (null));
  const [isRunning, setRunning] = useState(false);
  const [chosen, setChosen] = useState(/** @type {string | null} */ (null));
  const request = useRef(/** @type {AbortController | null} */ (null));
  useEffect(() => () => request.current?.abort(), []);

  const write = (/** @type {string} */ changed) => {
    setText(changed);
    ofBrowser.set(keyOf(flow), changed && changed.length <= KEPT_MAX ? changed : null);
  };
  const start = async () => {
    request.current?.abort();
    const own = (request.current = new AbortController());
    setRunning(true);
    setError(null);
    try {
      const report = await api("v1/definitions/test", { method: "POST", body: { definition, tests: text }, signal: own.signal });
      if (!own.signal.aborted) setRun({ report, definition, tests: text });
    } catch (failure) {
      if (own.signal.aborted) return;
      setRun(null);
      setError(inWords(failure));
    }
    setRunning(false);
  };
  const isOld = run !== null && (run.definition !== definition || run.tests !== text);
  const test = run?.report.tests.find((each) => each.name === chosen) ?? null;
  return { text, write, start, isRunning, error, run, isOld, test, choose: setChosen };
}

/** What is wrong with the definition is listed below its text. @param {any} error */
function inWords(error) {
  const isOfDefinition = error instanceof ApiError && error.problem?.diagnostics;
  return isOfDefinition ? new Error("No test has run, because the definition has errors. They are listed below its text.") : error;
}

/**
 * Tests to begin with: each call answers, and the execution succeeds.
 * @param {string | null} flow @param {{nodes: {name: string, call: {pattern: string} | null}[]} | null} graph
 */
export function firstTests(flow, graph) {
  const calls = new Map((graph?.nodes ?? []).flatMap((node) => (node.call ? [[node.name, node.call.pattern]] : [])));
  const names = [...calls.keys()];
  const table = (/** @type {string} */ title, /** @type {string[]} */ of, /** @type {string} */ reply) =>
    of.length ? `${title}:\n${of.map((name) => `  ${name}: ${reply}\n`).join("")}` : "";
  const [reported, answered] = [true, false].map((is) => names.filter((name) => (calls.get(name) === "waitForCallback") === is));
  return `flow: ${flow ?? "flow"}.yaml
${table("steps", answered, "{return: {}, always: true}")}${table("callbacks", reported, "{succeed: {}, always: true}")}tests:
  - name: it succeeds
    input: {}
    expect: {status: Succeeded}
`;
}
