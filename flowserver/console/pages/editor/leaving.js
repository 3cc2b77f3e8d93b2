/** Keeps unsaved text from being lost by leaving the page. */
import { Confirm } from "../../parts/basics.js";
import { guardLeaving } from "../../routes.js";
import { html, useEffect, useState } from "../../vendor/preact.js";

/**
 * Asks before the page is left while something is not saved.
 * @param {{isUnsaved: boolean}} props
 */
export function UnsavedGuard({ isUnsaved }) {
  const [leave, setLeave] = useState(/** @type {{now: () => void} | null} */ (null));
  useEffect(() => {
    if (!isUnsaved) return;
    const warn = (/** @type {BeforeUnloadEvent} */ event) => event.preventDefault();
    addEventListener("beforeunload", warn);
    const end = guardLeaving((now) => {
      setLeave({ now });
      return false;
    });
    return () => {
      removeEventListener("beforeunload", warn);
      end();
    };
  }, [isUnsaved]);
  if (!leave) return null;
  return html`<${Confirm} title="Leave without saving?" action="Leave, discard changes" danger onConfirm=${leave.now} onClose=${() => setLeave(null)}>
    <p>Your changes of this definition are not saved.</p>
  <//>`;
}
