/** Publish what is saved as a version. */
import { Dialog, Loading, Problem } from "../../parts/basics.js";
import { html, useEffect, useState } from "../../vendor/preact.js";
import { loadFlow, publish, Publish } from "../editor/saving.js";

/** @param {{flow: string, onDone: () => any, onClose: () => void}} props */
export function PublishSaved({ flow, onDone, onClose }) {
  const [saved, setSaved] = useState(/** @type {import("../editor/saving.js").Saved | null} */ (null));
  const [error, setError] = useState(/** @type {any} */ (null));
  useEffect(() => void loadFlow(flow).then(setSaved, setError), [flow]);
  if (!saved) return html`<${Dialog} title="Publish a version" onClose=${onClose}>${error ? html`<${Problem} error=${error} />` : html`<${Loading} />`}<//>`;
  const onPublish = async (/** @type {string} */ description) => {
    await publish(flow, description, saved.etag);
    await onDone();
  };
  return html`<${Publish} flow=${flow} text=${saved.text} title="Publish a version" action="Publish" named="the saved definition" onPublish=${onPublish} onClose=${onClose} />`;
}
