/** The editor of a flow that exists: save, publish, start. */
import { Link, path } from "../../routes.js";
import { may } from "../../store.js";
import { html, useState } from "../../vendor/preact.js";
import { Conflict, inBrief, isConflict, loadFlow, Publish, publish, saveFlow, useOneAtATime } from "./saving.js";
import { lineOfCreated } from "./new-desk.js";
import { StartRun } from "./starting.js";
import { Workbench } from "./workbench.js";

/**
 * @typedef {import("./saving.js").Saved} Saved
 * @typedef {"conflict" | "publish" | "start" | null} Open  the dialog that is open
 */

/** @param {{flow: string, saved: Saved, onSaved: (saved: Saved) => void}} props */
export function Desk({ flow, saved, onSaved }) {
  const [text, setText] = useState(saved.text);
  const [open, setOpen] = useState(/** @type {Open} */ (null));
  const [error, setError] = useState(/** @type {any} */ (null));
  const [first] = useState(() => lineOfCreated(flow));
  const [notice, setNotice] = useState(/** @type {any} */ (first === null ? "" : "Created."));
  const isUnsaved = text !== saved.text;
  const mayUpdate = may("flows.write");

  /** @param {Saved} from what the text replaces @returns {Promise<Saved>} */
  const saveOver = async (from) => {
    const now = text === from.text ? from : await saveFlow(flow, text, from.etag);
    onSaved(now);
    setNotice("Saved.");
    return now;
  };
  const save = useOneAtATime(async () => {
    setError(null);
    try {
      await saveOver(saved);
    } catch (failure) {
      if (!isConflict(failure)) return setError(failure);
      const now = await loadFlow(flow).catch(() => null);
      if (now?.text === text) onSaved(now); // what is saved is this text: an answer was lost
      else setOpen("conflict");
    }
  });
  const publishText = async (/** @type {string} */ description) => {
    try {
      const { etag } = await saveOver(saved);
      const version = await publish(flow, description, etag);
      setNotice(html`Saved; it is <${Link} to=${path`/flows/${flow}`}>version ${version}<//> now.`);
    } catch (failure) {
      if (!isConflict(failure)) throw inBrief(failure);
      setTimeout(() => setOpen("conflict")); // once the dialog that is open has closed itself
    }
  };
  const close = () => setOpen(null);

  return html`<${Workbench} flow=${flow} text=${text} onText=${setText} onSave=${() => mayUpdate && save()} isUnsaved=${isUnsaved} error=${error} first=${first}
    title=${html`<h1 class="cut" title=${flow}>${flow}</h1>
      <span class=${isUnsaved ? "unsaved" : "muted"} role="status">${isUnsaved ? "Unsaved changes" : notice}</span>`}
    actions=${html`
      <button type="button" disabled=${!may("executions.start")} onClick=${() => setOpen("start")}>Start…</button>
      <button type="button" disabled=${!mayUpdate || !may("versions.publish")} onClick=${() => setOpen("publish")}>Save as new version…</button>
      <button type="button" class="primary" disabled=${!mayUpdate || !isUnsaved} onClick=${save} title="Ctrl S" aria-keyshortcuts="Control+S">Save</button>
    `}>
    ${open === "conflict" &&
    html`<${Conflict} flow=${flow} mine=${text} onClose=${close}
      onTake=${(/** @type {Saved} */ theirs) => (onSaved(theirs), setText(theirs.text), close())}
      onOverwrite=${async (/** @type {Saved} */ theirs) => (await saveOver(theirs), close())} />`}
    ${open === "publish" && html`<${Publish} flow=${flow} text=${text} onPublish=${publishText} onClose=${close} />`}
    ${open === "start" && html`<${StartRun} flow=${flow} text=${text} isUnsaved=${isUnsaved} onSave=${mayUpdate ? () => saveOver(saved) : null} onClose=${close} />`}
  <//>`;
}
