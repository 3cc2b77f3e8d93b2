/** Sign-in by a link: its code, after the #, is exchanged for a new access key. */
import { html, useEffect, useState } from "../vendor/preact.js";
import { Copy, Panel, Problem } from "../parts/basics.js";
import { Facts } from "../parts/side.js";
import { go, guardLeaving } from "../routes.js";
import { permissions, takeKey } from "../store.js";

/** The code of the address, which then no longer holds it: it is not for bookmarks, nor for the history. */
function takeCode() {
  const code = location.hash.slice(1);
  if (code) history.replaceState(null, "", location.pathname + location.search);
  return code;
}

export default function SignInByLink() {
  const [code] = useState(takeCode);
  useEffect(() => guardLeaving(() => true), []); // the frame begins other pages anew after a sign-in
  const [key, setKey] = useState(/** @type {import("../store/session.js").NewKey | null} */ (null));
  return html`<div class="page">
    <h1 class="hidden">Sign in</h1>
    <${Panel} title=${`Sign in to ${location.host}`}>
      <div class="body column">${key ? html`<${Shown} new=${key} />` : html`<${Exchange} code=${code} onKey=${setKey} />`}</div>
    <//>
  </div>`;
}

/** A button, so that a program that merely opens links uses none up. @param {{code: string, onKey: (key: any) => void}} props */
function Exchange({ code, onKey }) {
  const [state, setState] = useState(/** @type {{busy: boolean, error: any}} */ ({ busy: false, error: null }));
  const exchange = async () => {
    setState({ busy: true, error: null });
    try {
      onKey(await takeKey(code));
    } catch (error) {
      setState({ busy: false, error });
    }
  };
  if (!code) return html`<p>This address lacks the end of the link, after <code>#</code>. Open the whole link, in a new tab.</p>`;
  const { open } = permissions.value;
  return html`
    <p>${open ? "The server has no access key: every program on its machine may use it. This link makes the first key, for you. From then on every caller needs one." : "This link makes an access key for you. It works once."}</p>
    <${Problem} error=${state.error} />
    <p><button type="button" class="primary" disabled=${state.busy} onClick=${exchange}>${open ? "Make the first key" : "Sign in"}</button></p>`;
}

/** @param {{new: import("../store/session.js").NewKey}} props */
function Shown({ new: key }) {
  const copied = (/** @type {string} */ text) => html`<span class="row"><code>${text}</code><${Copy} text=${text} /></span>`;
  return html`
    <p role="status">You are signed in until you close this tab. Keep the key for the next time: nothing shows it again.</p>
    <${Facts} facts=${[
      ["Role", html`<span>${key.role}${key.flows && html` <code>${key.flows}…</code>`}</span>`],
      ["Id", copied(key.id)],
      ["Secret, for SDKs", copied(key.secret)],
      ["Bearer token", copied(key.bearerToken)],
    ]} />
    <p><button type="button" class="primary" onClick=${() => go("/")}>Open the console</button></p>`;
}
