/** Keys: single ones such as `j`, and two in a row such as `g e`. The help (`?`) lists those that work at present. */
import { ofBrowser } from "./memory.js";
import { signal, useLayoutEffect, useRef } from "./vendor/preact.js";

/**
 * @typedef {{keys: string, label: string, run: (event: KeyboardEvent) => void | false, inInputs?: boolean}} Key
 *   `keys`: as in KeyboardEvent.key, several with blanks between, alternatives with `|`; `run` returns false if the key
 *   means nothing at present
 */

/** Groups of keys that work at present; the last wins. */
export const groups = signal(/** @type {{title: string, list: Key[]}[]} */ ([]));

const OFF_KEY = "flowserver.characterKeys";

/** Whether characters are keys, too. Speech that is taken for typing, or a hand that shakes, would press them. */
export const charactersWork = signal(ofBrowser.get(OFF_KEY) !== "off");

/** @param {boolean} work this browser remembers it */
export function setCharactersWork(work) {
  charactersWork.value = work;
  ofBrowser.set(OFF_KEY, work ? null : "off");
}

const SEQUENCE_MS = 1_200;
let first = { key: "", at: 0 };

/**
 * Keys that work while the component is shown.
 * @param {string} title heading in the help @param {Key[]} list
 */
export function useKeys(title, list) {
  const latest = useRef(list);
  latest.current = list;
  const shape = list.map((key) => key.keys + key.label).join("\n");
  // Before the browser paints: who sees the page can press them.
  useLayoutEffect(() => {
    const group = {
      title,
      list: latest.current.map((key, index) => ({
        ...key,
        run: (/** @type {KeyboardEvent} */ event) => latest.current[index].run(event),
      })),
    };
    groups.value = [...groups.peek(), group];
    return () => {
      groups.value = groups.peek().filter((each) => each !== group);
    };
  }, [title, shape]);
}

/** @param {EventTarget | null} target */
function takesText(target) {
  if (!(target instanceof HTMLElement)) return false;
  if (target.isContentEditable || target.shadowRoot) return true;
  if (target instanceof HTMLInputElement) return !["checkbox", "radio", "button", "range"].includes(target.type);
  return target instanceof HTMLTextAreaElement || target instanceof HTMLSelectElement;
}

/** What was typed since a field was opened that is still loading; null while no such field is awaited. */
let ahead = /** @type {{text: string, isEntered: boolean} | null} */ (null);
let giveUp = () => {};

/** Keeps what is typed for a field that is still loading, until `takeTypedAhead`. @param {() => void} onEscape */
export function keepTypedAhead(onEscape) {
  ahead ??= { text: "", isEntered: false };
  giveUp = onEscape;
}

/** What was typed for the field that is there now (or will never be), and whether Enter was pressed after it. */
export function takeTypedAhead() {
  const taken = ahead ?? { text: "", isEntered: false };
  ahead = null;
  return taken;
}

/** Take in a key for the field that is awaited. @param {{text: string, isEntered: boolean}} typed @param {string} key @returns {boolean} whether it means something there */
function typeAhead(typed, key) {
  if (key === "Enter") typed.isEntered = true;
  else if (key === "Escape") giveUp();
  else if (key === "Backspace") typed.text = typed.text.slice(0, -1);
  else if (key.length === 1) typed.text += key;
  else return false;
  return true;
}

addEventListener("keydown", (event) => {
  if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey || event.isComposing) return;
  if (document.querySelector("dialog:modal")) return;
  if (ahead && typeAhead(ahead, event.key)) return event.preventDefault();
  if (event.key.length === 1 && event.key !== " " && !charactersWork.peek()) return;
  const inText = takesText(event.target);
  const now = performance.now();
  const pair = now - first.at < SEQUENCE_MS && !inText ? `${first.key} ${event.key}` : "";
  for (const group of [...groups.peek()].reverse()) {
    for (const key of group.list) {
      if (inText && !key.inInputs) continue;
      const wanted = key.keys.split("|");
      if (!wanted.includes(event.key) && !(pair && wanted.includes(pair))) continue;
      if (pair && wanted.includes(event.key) && isPair(pair)) continue;
      if (isPressable(event.target) && (event.key === "Enter" || event.key === " ")) continue;
      if (key.run(event) === false) continue;
      event.preventDefault();
      first = { key: "", at: 0 };
      return;
    }
  }
  first = inText ? { key: "", at: 0 } : { key: event.key, at: now };
});

/** @param {string} pair */
function isPair(pair) {
  return groups.peek().some((group) => group.list.some((key) => key.keys.split("|").includes(pair)));
}

/** @param {EventTarget | null} target whether Enter presses it by itself */
function isPressable(target) {
  return target instanceof HTMLElement && target.closest("a, button, summary, [role=button], [role=tab]") !== null;
}
