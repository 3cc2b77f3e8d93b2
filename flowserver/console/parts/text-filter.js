/** A field that filters what is below it. */
import { html, useEffect, useRef, useState } from "../vendor/preact.js";

const TYPED_MS = 200;

/**
 * A text to filter by. `onChange` gets it when typing pauses, or at Enter, if it fits the pattern; `onTyped` at each key.
 * With `isWhole` a pause counts only if the text is one that it takes.
 * @param {{name: string, label: string, value: string, onChange: (text: string) => void, class?: string, list?: string, pattern?: string,
 *   onTyped?: (text: string) => void, isWhole?: (text: string) => boolean}} props
 */
export function TextFilter({ name, label, value, onChange, class: more = "", list, pattern, onTyped, isWhole }) {
  const [text, setText] = useState(value);
  const timer = useRef(0);
  const sent = useRef(value);
  const whole = useRef(isWhole);
  whole.current = isWhole;
  useEffect(() => () => clearTimeout(timer.current), []);
  useEffect(() => {
    if (value === sent.current) return;
    sent.current = value;
    setText(value);
  }, [value]);
  const send = (/** @type {HTMLInputElement} */ input) => {
    clearTimeout(timer.current);
    if (!input.validity.valid || input.value === sent.current) return;
    sent.current = input.value;
    onChange(input.value);
  };
  const onInput = (/** @type {any} */ event) => {
    const input = event.currentTarget;
    setText(input.value);
    onTyped?.(input.value);
    clearTimeout(timer.current);
    timer.current = setTimeout(() => (whole.current?.(input.value) ?? true) && send(input), TYPED_MS);
  };
  const onKeyDown = (/** @type {any} */ event) => {
    if (event.key === "Enter") send(event.currentTarget);
    if (event.key === "Escape") event.currentTarget.blur();
  };
  return html`<input type="text" name=${name} class=${more} aria-label=${label} placeholder=${label} value=${text} list=${list} pattern=${pattern}
    autocomplete="off" spellcheck=${false} onInput=${onInput} onKeyDown=${onKeyDown} onChange=${(/** @type {any} */ event) => send(event.currentTarget)} />`;
}
