/** What a browser remembers. If it forbids that, it is as if nothing had been remembered. */

/** Until it is forgotten, for all tabs. */
export const ofBrowser = memory(() => localStorage);

/** Until the tab is closed. */
export const ofTab = memory(() => sessionStorage);

/** @param {() => Storage} storage throws where the browser forbids it */
function memory(storage) {
  return {
    /** @param {string} key @returns {string | null} */
    get(key) {
      try {
        return storage().getItem(key);
      } catch {
        return null;
      }
    },
    /** @param {string} key @param {string | null} value null forgets it */
    set(key, value) {
      try {
        if (value === null) storage().removeItem(key);
        else storage().setItem(key, value);
      } catch {
        // It lasts as long as the page.
      }
    },
  };
}
