/** Saving a definition, and the dialogs around it: what another has saved meanwhile, and publishing a version. */
import { Confirm, Dialog, Loading, Problem } from "../../parts/basics.js";
import { Diff } from "../../parts/diff.js";
import { countOf } from "../../parts/problems.js";
import { path } from "../../routes.js";
import { ApiError, api, apiResponse } from "../../store.js";
import { html, useEffect, useRef, useState } from "../../vendor/preact.js";

/** @typedef {{text: string, etag: string}} Saved  a flow's definition on the server, and the flow's entity tag */

/** @param {string} flow @returns {Promise<Saved>} */
export async function loadFlow(flow) {
  const { data, response } = await apiResponse(path`v1/flows/${flow}`);
  return { text: data.definition, etag: response.headers.get("ETag") ?? "" };
}

/**
 * Save the definition if the flow still is as `etag` says; throws an ApiError of status 412 if it is not.
 * @param {string} flow @param {string} text @param {string} etag @returns {Promise<Saved>}
 */
export async function saveFlow(flow, text, etag) {
  const { response } = await apiResponse(path`v1/flows/${flow}`, {
    method: "PATCH",
    body: { definition: text },
    headers: { "If-Match": etag },
  });
  return { text, etag: response.headers.get("ETag") ?? "" };
}

/** @param {string} flow @param {string} text */
export const createFlow = (flow, text) => api("v1/flows", { method: "POST", body: { name: flow, definition: text } });

/** @param {any} error */
export const isConflict = (error) => error instanceof ApiError && error.status === 412;

/** A refusal for what is listed below the text already is one sentence. @param {any} error */
export function inBrief(error) {
  const count = countOf(error?.problem?.diagnostics ?? []);
  return count ? new Error(`Not saved: the definition has ${count}, listed below the text.`) : error;
}

/**
 * The same action, but while it runs another call does nothing: a key that repeats saves once.
 * @param {() => Promise<void>} act @returns {() => Promise<void>}
 */
export function useOneAtATime(act) {
  const isBusy = useRef(false);
  return async () => {
    if (isBusy.current) return;
    isBusy.current = true;
    await act().finally(() => (isBusy.current = false));
  };
}

/**
 * Another has saved the flow since it was opened here: shows both texts, and lets you choose.
 * @param {{flow: string, mine: string, onTake: (theirs: Saved) => void, onOverwrite: (theirs: Saved) => Promise<void>,
 *   onClose: () => void}} props
 */
export function Conflict({ flow, mine, onTake, onOverwrite, onClose }) {
  const [theirs, setTheirs] = useState(/** @type {Saved | null} */ (null));
  const [error, setError] = useState(/** @type {any} */ (null));
  useEffect(() => void loadFlow(flow).then(setTheirs, setError), [flow]);
  const overwrite = async () => {
    try {
      if (theirs) await onOverwrite(theirs);
    } catch (failure) {
      if (isConflict(failure)) loadFlow(flow).then(setTheirs, setError);
      else setError(failure);
    }
  };
  return html`<${Dialog} title="This flow was saved meanwhile" onClose=${onClose} class="wide-dialog">
    <p>Since you opened it here, <code>${flow}</code> was saved elsewhere. Nothing of yours is saved yet.</p>
    <${Problem} error=${error} />
    ${theirs ? html`<${Diff} left=${theirs.text} right=${mine} leftTitle="saved elsewhere" rightTitle="your text" />` : !error && html`<${Loading} />`}
    <footer>
      <button type="button" onClick=${onClose}>Continue editing</button>
      <button type="button" disabled=${!theirs} onClick=${() => theirs && onTake(theirs)}>Discard mine, take theirs</button>
      <button type="button" class="danger" disabled=${!theirs} onClick=${overwrite}>Replace theirs with mine</button>
    </footer>
  <//>`;
}

/**
 * Publish a text, after a look at what the new version changes.
 * @param {{flow: string, text: string, title?: string, action?: string, named?: string, onPublish: (description: string) => Promise<void>, onClose: () => void}} props
 */
export function Publish({ flow, text, title = "Save as a new version", action = "Save and publish", named = "your text", onPublish, onClose }) {
  const [description, setDescription] = useState("");
  const [newest, setNewest] = useState(/** @type {{version: number, definition: string} | null | undefined} */ (undefined));
  const [error, setError] = useState(/** @type {any} */ (null));
  useEffect(() => void newestVersion(flow).then(setNewest, setError), [flow]);
  return html`<${Confirm} title=${title} action=${action} onConfirm=${() => onPublish(description)} onClose=${onClose} class="wide-dialog">
    <${Problem} error=${error} />
    ${newest === undefined && !error && html`<${Loading} />`}
    ${newest === null && html`<p>This is the first version of <code>${flow}</code>. Aliases can then choose it, and starts can name it.</p>`}
    ${newest && html`<${Diff} left=${newest.definition} right=${text} leftTitle=${`version ${newest.version}`} rightTitle=${named} />`}
    ${newest?.definition === text && html`<p class="muted">With the same definition and description no new version is made.</p>`}
    <label class="field">
      <span>What is new (shown in the list of versions)</span>
      <input value=${description} maxlength="4096" autofocus onInput=${(/** @type {any} */ event) => setDescription(event.currentTarget.value)} />
    </label>
  <//>`;
}

/** The newest version; null if there is none. @param {string} flow */
async function newestVersion(flow) {
  const { versions } = await api(path`v1/flows/${flow}/versions`, { query: { limit: 1 } });
  return versions.length ? api(path`v1/flows/${flow}/versions/${String(versions[0].version)}`) : null;
}

/**
 * Publish the flow as it was saved. @param {string} flow @param {string} description @param {string} etag
 * @returns {Promise<number>} the number of the version
 */
export async function publish(flow, description, etag) {
  const body = { description };
  const made = await api(path`v1/flows/${flow}/versions`, { method: "POST", body, headers: { "If-Match": etag } });
  return made.version;
}
