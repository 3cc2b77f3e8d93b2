/** The form of a message to a queue or a topic. */
import { html, useState } from "../vendor/preact.js";
import { Confirm } from "./basics.js";

/**
 * @param {{title: string, kind: "queue" | "topic", onSend: (message: Record<string, any>) => Promise<void>, onClose: () => void}} props
 */
export function MessageDialog({ title, kind, onSend, onClose }) {
  const [body, setBody] = useState("");
  const [isEncoded, setEncoded] = useState(false);
  const [more, setMore] = useState("");
  const send = () => {
    const text = isEncoded ? toBase64(body) : body;
    const extra = more.trim() === "" ? {} : kind === "queue" ? { delaySeconds: Number(more) } : { tag: more.trim() };
    return onSend({ body: text, ...extra });
  };
  return html`<${Confirm} title=${title} action=${kind === "queue" ? "Send" : "Publish"} onConfirm=${send} onClose=${onClose}>
    <label class="field"><span>Body</span>
      <textarea rows="6" required spellcheck=${false} value=${body} onInput=${(/** @type {any} */ event) => setBody(event.currentTarget.value)}></textarea></label>
    <label class="row"><input type="checkbox" checked=${isEncoded} onChange=${(/** @type {any} */ event) => setEncoded(event.currentTarget.checked)} />
      Encode as Base64, which SDKs of the message service read</label>
    ${kind === "queue"
      ? html`<label class="field"><span>Delay in seconds (the queue's own if empty)</span><input type="number" min="0" value=${more} onInput=${(/** @type {any} */ event) => setMore(event.currentTarget.value)} /></label>`
      : html`<label class="field"><span>Tag that subscriptions filter by (optional)</span><input maxlength="16" value=${more} onInput=${(/** @type {any} */ event) => setMore(event.currentTarget.value)} /></label>`}
  <//>`;
}

/** @param {string} text */
function toBase64(text) {
  return btoa(Array.from(new TextEncoder().encode(text), (byte) => String.fromCharCode(byte)).join(""));
}
