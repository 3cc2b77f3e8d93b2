/** Messages that wait in a queue: their bodies as text, cut if they are long. */
import { html, useState } from "../vendor/preact.js";
import { Copy, Took } from "./basics.js";

const CUT = 2_000;

/** @param {{messages: any[]}} props */
export function Messages({ messages }) {
  return html`<ol class="messages">
    ${messages.map((message) => html`<${Message} key=${message.messageId} message=${message} />`)}
  </ol>`;
}

/** @param {{message: any}} props */
function Message({ message }) {
  const [isWhole, setWhole] = useState(false);
  const body = message.body;
  const times = message.dequeueCount === 1 ? "once" : `${message.dequeueCount} times`;
  return html`<li>
    <p class="row muted"><span>waits <${Took} from=${message.enqueuedTime} /></span>
      ${message.dequeueCount > 0 && html`<span>received ${times}</span>`}
      ${message.priority !== 8 && html`<span>priority ${message.priority}</span>`}
      <code class="cut grow" title=${message.messageId}>${message.messageId}</code><${Copy} text=${body} /></p>
    <pre tabindex="0">${isWhole ? body : body.slice(0, CUT)}</pre>
    ${!isWhole && body.length > CUT && html`<button type="button" onClick=${() => setWhole(true)}>Show all ${body.length.toLocaleString()} characters</button>`}
  </li>`;
}
