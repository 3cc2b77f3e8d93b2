/** Two texts and how they differ: side by side, or as one text where there is less room. Loaded when it is shown first. */
import { stylesheet } from "../css.js";
import { html, useEffect, useRef, useState } from "../vendor/preact.js";

stylesheet(new URL("./editor.css", import.meta.url));

/** @typedef {import("./editor/diff-view.js").Texts} Texts */

const WIDE = "(min-width: 900px)";
const SIDE_BY_SIDE_PX = 640;
/** Characters of both texts together that a browser compares and shows without a pause. */
const CHARACTERS_MAX = 1_000_000;

/**
 * `right` is the newer text.
 * @param {{left: string, right: string, leftTitle: string, rightTitle: string, language?: "yaml" | "json" | "text"}} props
 */
export function Diff({ left, right, leftTitle, rightTitle, language = "yaml" }) {
  const host = useRef(/** @type {HTMLDivElement | null} */ (null));
  const isWide = useWide(host);
  const [changes, setChanges] = useState(/** @type {number | null} */ (null));
  const [hasFailed, setFailed] = useState(false);
  const isTooLarge = left.length + right.length > CHARACTERS_MAX;
  const isSame = left === right;

  useEffect(() => {
    if (isTooLarge || isSame || isWide === null) return;
    let isGone = false;
    /** @type {{changes: number, destroy: () => void} | undefined} */
    let shown;
    import("./editor/diff-view.js").then(({ showDiff }) => {
      const element = host.current;
      if (isGone || !element) return;
      const root = element.shadowRoot ?? element.attachShadow({ mode: "open" });
      shown = showDiff(root, { left, right, leftTitle, rightTitle, language }, isWide);
      setChanges(shown.changes);
    }, () => setFailed(true));
    return () => {
      isGone = true;
      shown?.destroy();
    };
  }, [left, right, leftTitle, rightTitle, language, isWide, isTooLarge, isSame]);

  if (isSame) return html`<p class="diff-note muted" role="status">${leftTitle} and ${rightTitle} are the same.</p>`;
  if (isTooLarge) {
    const size = ((left.length + right.length) / 1_000_000).toFixed(1);
    return html`<p class="diff-note muted" role="status">They differ, and are too large to be compared here: ${size} million characters.</p>`;
  }
  if (hasFailed) return html`<p class="diff-note muted" role="status">What compares texts could not be loaded. Reload the page to try again.</p>`;
  return html`<div class="diff ${isWide ? "wide" : ""}">
    <div class="diff-titles">
      <span class="removed cut" title=${leftTitle}>− ${leftTitle}</span>
      <span class="right">
        <span class="added cut" title=${rightTitle}>+ ${rightTitle}</span>
        <span class="muted" role="status">${changes === null ? "" : changes === 1 ? "1 change" : `${changes} changes`}</span>
      </span>
    </div>
    <div class="diff-host" ref=${host}></div>
  </div>`;
}

/**
 * Whether there is room for two texts beside each other; null until that is known.
 * @param {{current: HTMLElement | null}} host @returns {boolean | null}
 */
function useWide(host) {
  const [isWide, setWide] = useState(/** @type {boolean | null} */ (null));
  useEffect(() => {
    const media = matchMedia(WIDE);
    const look = () => setWide(media.matches && (host.current?.clientWidth ?? SIDE_BY_SIDE_PX) >= SIDE_BY_SIDE_PX);
    look();
    media.addEventListener("change", look);
    return () => media.removeEventListener("change", look);
  }, []);
  return isWide;
}
