/** Style sheets that a part or page brings along. */

/** @type {Map<string, Promise<void>>} */
const loaded = new Map();

/**
 * Load a style sheet once. The promise is settled when it applies, or has failed to load; nothing needs to wait for it.
 * @param {URL} url
 * @returns {Promise<void>}
 */
export function stylesheet(url) {
  const found = loaded.get(url.href);
  if (found) return found;
  const link = document.createElement("link");
  link.rel = "stylesheet";
  link.href = url.href;
  /** @type {Promise<void>} */
  const done = new Promise((resolve) => {
    link.onload = link.onerror = () => resolve();
  });
  loaded.set(url.href, done);
  document.head.append(link);
  return done;
}

/** How long a page waits for style sheets: without its own it is plain, but it works. */
const WAIT_MS = 3_000;

/** Settled once every style sheet that was asked for applies, so that no page is painted without its own, or after a while. */
export function stylesheetsReady() {
  const late = new Promise((resolve) => setTimeout(resolve, WAIT_MS));
  return Promise.race([late, Promise.all(loaded.values())]);
}
