/** The form that registers a function, or changes its registration. */
import { html, useState } from "../vendor/preact.js";
import { Confirm } from "./basics.js";

/**
 * `row` is the present registration; null for a new one. `onPut` gets the fields of the API.
 * @param {{row: any, onPut: (service: string, name: string, body: Record<string, any>) => Promise<void>, onClose: () => void}} props
 */
export function FunctionDialog({ row, onPut, onClose }) {
  const [given, setGiven] = useState(
    /** @type {Record<string, string>} */ ({
      name: row ? (row.service === "-" ? row.function : `${row.service}/${row.function}`) : "",
      url: row?.url ?? "",
      timeoutSeconds: String(row?.timeoutSeconds ?? ""),
      concurrencyMax: String(row?.concurrencyMax ?? ""),
      waitingMax: String(row?.waitingMax ?? ""),
      headers: Object.entries(row?.headers ?? {}).map(([name, value]) => `${name}: ${value}`).join("\n"),
    }),
  );
  const field = (/** @type {string} */ name) => ({
    value: given[name],
    onInput: (/** @type {any} */ event) => setGiven({ ...given, [name]: event.currentTarget.value }),
  });
  const put = () => {
    const [service, name] = given.name.includes("/") ? given.name.trim().split("/", 2) : ["-", given.name.trim()];
    const kept = row ? { initializeUrl: row.initializeUrl, preStopUrl: row.preStopUrl, hookSeconds: row.hookSeconds } : {};
    const numbers = ["timeoutSeconds", "concurrencyMax", "waitingMax"].flatMap((each) => (given[each] === "" ? [] : [[each, Number(given[each])]]));
    return onPut(service, name, { ...kept, url: given.url.trim(), headers: headersOf(given.headers), ...Object.fromEntries(numbers) });
  };
  return html`<${Confirm} title=${row ? `Edit ${given.name}` : "Register a function"} action=${row ? "Save" : "Register"} onConfirm=${put} onClose=${onClose}>
    ${!row && html`<label class="field"><span>Name: service/function, or function</span>
      <input ...${field("name")} required pattern="([A-Za-z_][A-Za-z0-9_\\-]*(\\.[A-Za-z0-9_\\-]+)?/)?[A-Za-z_][A-Za-z0-9_\\-]*" placeholder="shop/charge" spellcheck=${false} /></label>`}
    <label class="field"><span>Address (a URL), to which calls are POSTed</span><input type="url" ...${field("url")} required /></label>
    <div class="row">
      <label class="field"><span>Seconds for a call</span><input type="number" min="1" ...${field("timeoutSeconds")} placeholder="600" /></label>
      <label class="field"><span>Calls at once</span><input type="number" min="1" ...${field("concurrencyMax")} placeholder="no bound" /></label>
      <label class="field"><span>Calls that wait</span><input type="number" min="0" ...${field("waitingMax")} placeholder="default" /></label>
    </div>
    <label class="field"><span>Headers, one a line${row ? "; a value (hidden) stays as it is" : ""}</span>
      <textarea rows="3" spellcheck=${false} ...${field("headers")} placeholder="X-Shop: main"></textarea></label>
  <//>`;
}

/** @param {string} text @returns {Record<string, string>} throws an Error for a line without a colon */
function headersOf(text) {
  const lines = text.split("\n").filter((line) => line.trim());
  return Object.fromEntries(
    lines.map((line) => {
      const colon = line.indexOf(":");
      if (colon < 1) throw new Error(`A header needs a colon: ${line}`);
      return [line.slice(0, colon).trim(), line.slice(colon + 1).trim()];
    }),
  );
}
