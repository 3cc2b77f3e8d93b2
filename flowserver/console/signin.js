/** Sign-in with the bearer token of an access key. */
import { html, useEffect, useRef, useState } from "./vendor/preact.js";
import { Problem } from "./parts/basics.js";
import { signIn } from "./store.js";

/** What a header can carry. */
const TOKEN = /^[\x21-\x7e]+$/;

/** @param {{reason: string}} props `reason`: what the server said to the token before; "" if there was none */
export default function SignIn({ reason }) {
  const [state, setState] = useState(/** @type {{busy: boolean, error: any}} */ ({ busy: false, error: null }));
  const dialog = useRef(/** @type {HTMLDialogElement | null} */ (null));
  const input = useRef(/** @type {HTMLInputElement | null} */ (null));
  useEffect(() => {
    dialog.current?.showModal();
    input.current?.focus();
    return () => dialog.current?.close();
  }, []);
  const submit = async (/** @type {Event} */ event) => {
    event.preventDefault();
    const given = input.current?.value.trim();
    if (!given) return;
    setState({ busy: true, error: null });
    try {
      if (!TOKEN.test(given)) throw new Error("This is no bearer token: tokens are ASCII without blanks.");
      await signIn(given);
    } catch (error) {
      setState({ busy: false, error });
      input.current?.select();
    }
  };
  return html`<dialog ref=${dialog} class="sign-in" aria-label="Sign in" onCancel=${(/** @type {Event} */ event) => event.preventDefault()}>
    <header><h2>Sign in to ${location.host}</h2></header>
    <form class="body" onSubmit=${submit}>
      ${reason && !state.error && html`<p role="status">The server no longer takes your token: ${reason}</p>`}
      <label class="field"><span>Bearer token</span>
        <input type="password" name="token" autocomplete="off" spellcheck=${false} required ref=${input} class="mono" />
      </label>
      <p class="muted">It stays in this tab, until you close it or sign out. To get one: <code>flowserver keys create --label console</code>; with <code>--sign-in-link</code> it shows a link that signs in.</p>
      <${Problem} error=${state.error} />
      <footer><button type="submit" class="primary" disabled=${state.busy}>Sign in</button></footer>
    </form>
  </dialog>`;
}
