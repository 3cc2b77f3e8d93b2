/** Copies of texts. */

/** What to say when `copyText` gives false. */
export const NO_COPY = "The browser does not let this page copy";

/** @param {string} text @returns {Promise<boolean>} whether the browser took it */
export async function copyText(text) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    return copyBySelection(text);
  }
}

/** Pages that were not served over TLS or from this machine have no clipboard. @param {string} text */
function copyBySelection(text) {
  const before = document.activeElement;
  const area = document.createElement("textarea");
  area.value = text;
  (document.querySelector("dialog:modal") ?? document.body).append(area);
  area.select();
  const isCopied = document.execCommand("copy");
  area.remove();
  if (before instanceof HTMLElement) before.focus({ preventScroll: true });
  return isCopied;
}
