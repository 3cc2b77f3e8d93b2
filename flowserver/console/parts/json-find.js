/** The search field of a JSON tree. */

import { html, useCallback, useEffect, useMemo, useRef, useState } from "../vendor/preact.js";
import { findText, MATCHES_MAX, openTo } from "./json-rows.js";

const TYPING_MS = 120;

/**
 * @param {{value: any, root: string, opened: Map<string, any>, setOpened: (opened: Map<string, any>) => void, show: (path: string) => void}} given
 * @returns {{Field: any, path: string|null}} the field, and the path of the match that is shown
 */
export function useFind({ value, root, opened, setOpened, show }) {
  const [wanted, setWanted] = useState("");
  const [matches, setMatches] = useState(/** @type {number[][]|null} */ (null));
  const [at, setAt] = useState(0);
  const [path, setPath] = useState(/** @type {string|null} */ (null));
  const now = useRef(/** @type {any} */ (null));
  now.current = { value, root, opened, setOpened, show, matches, at, wanted };

  const goTo = useCallback((/** @type {number} */ index, /** @type {number[][]} */ all) => {
    const on = now.current;
    setAt(index);
    if (!all.length) return setPath(null);
    const next = openTo(on.value, on.root, on.opened, all[index]);
    on.setOpened(next.opened);
    setPath(next.path);
    on.show(next.path);
  }, []);

  useEffect(() => {
    if (!wanted) {
      setMatches(null);
      setPath(null);
      return;
    }
    const stop = new AbortController();
    const timer = setTimeout(async () => {
      const found = await findText(value, wanted, stop.signal);
      if (stop.signal.aborted) return;
      setMatches(found);
      goTo(0, found);
    }, TYPING_MS);
    return () => {
      clearTimeout(timer);
      stop.abort();
    };
  }, [wanted, value]);

  const Field = useMemo(() => {
    /** @param {{inputRef: any}} given */
    return function FindField({ inputRef }) {
      const on = now.current;
      /** @param {KeyboardEvent} event */
      function onKey(event) {
        if (event.key === "Escape" && now.current.wanted) {
          event.stopPropagation();
          setWanted("");
        } else if (event.key === "Enter" && now.current.matches?.length) {
          event.preventDefault();
          const { matches: all, at: index } = now.current;
          goTo((index + (event.shiftKey ? all.length - 1 : 1)) % all.length, all);
        }
      }
      return html`<label class="json-find">
        <input type="search" ref=${inputRef} placeholder="Search" aria-label="Search keys and values" value=${on.wanted}
          onInput=${(/** @type {any} */ event) => setWanted(event.target.value)} onKeyDown=${onKey} />
        <span class="json-count" role="status">${countText(on.wanted, on.matches, on.at)}</span>
      </label>`;
    };
  }, []);
  return { Field, path };
}

/** @param {string} wanted @param {number[][]|null} matches @param {number} at */
function countText(wanted, matches, at) {
  if (!wanted || !matches) return "";
  if (!matches.length) return "nothing";
  return `${at + 1} of ${matches.length === MATCHES_MAX ? `${MATCHES_MAX}+` : matches.length}`;
}
