/** How single values are written in a tree: always as text, cut if they are long, and never able to reorder the line. */

import { html, useState } from "../vendor/preact.js";
import { parseJson } from "../exact-json.js";
import { isContainer, sizeOf } from "./json-rows.js";

export const CUT_CHARACTERS = 2048;
const SHOWN_MORE = 20_000;
const PREVIEW_CHARACTERS = 60;
const PREVIEW_CHILDREN = 4;
/** Controls and marks that would change how the text around them is shown. */
const UNSEEN = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u200e\u200f\u2028\u2029\u202a-\u202e\u2066-\u2069\ufeff]/g;

/** The text with what cannot be seen written as escapes. @param {string} text */
export function seen(text) {
  return text.replace(UNSEEN, (each) => `\\u${each.charCodeAt(0).toString(16).padStart(4, "0")}`);
}

/**
 * A text, its beginning first; buttons show more of it, piece by piece.
 * @param {{text: string, cut?: number}} given
 */
export function CutText({ text, cut = CUT_CHARACTERS }) {
  const [shown, setShown] = useState(cut);
  if (text.length <= shown) return html`${seen(text)}`;
  const left = text.length - shown;
  const more = Math.min(SHOWN_MORE, left);
  return html`${seen(text.slice(0, shown))}<button class="quiet json-show"
      onClick=${(/** @type {Event} */ event) => {
        event.stopPropagation();
        setShown(shown + more);
      }}>… show ${more < left ? `${sizeText(more)} of ${sizeText(left)} more` : `${sizeText(left)} more`}</button>`;
}

/** @param {number} count characters */
export function sizeText(count) {
  if (count < 1000) return `${count} characters`;
  return count < 1_000_000 ? `${(count / 1000).toFixed(1)} k` : `${(count / 1_000_000).toFixed(1)} M`;
}

/** @param {{value: any}} given a text, number or word */
export function Scalar({ value }) {
  if (typeof value === "string") return html`<span class="json-text">"<bdi><${CutText} text=${value} /></bdi>"</span>`;
  if (typeof value === "number" || typeof value === "bigint") return html`<span class="json-number">${String(value)}</span>`;
  return html`<span class="json-word">${String(value)}</span>`;
}

/** @param {{value: any}} given an object or list that is not open */
export function ClosedValue({ value }) {
  return html`<span class="json-closed">${preview(value, PREVIEW_CHARACTERS)}</span>`;
}

/**
 * The beginning of a value on one line.
 * @param {any} value
 * @param {number} [characters]
 * @returns {string}
 */
export function preview(value, characters = PREVIEW_CHARACTERS) {
  if (typeof value === "string") return JSON.stringify(seen(value.length > characters ? `${value.slice(0, characters)}…` : value));
  if (!isContainer(value)) return String(value);
  const isList = Array.isArray(value);
  const parts = [];
  let left = characters;
  const keys = isList ? value.slice(0, PREVIEW_CHILDREN).keys() : firstKeys(value);
  let count = 0;
  for (const key of keys) {
    if (left <= 0) break;
    const each = value[key];
    const inner = isContainer(each) ? (Array.isArray(each) ? `[${each.length || ""}]` : sizeOf(each) ? "{…}" : "{}") : preview(each, 24);
    const part = isList ? inner : `${seen(String(key))}: ${inner}`;
    parts.push(part);
    left -= part.length;
    count += 1;
  }
  const size = sizeOf(value);
  const text = parts.join(", ") + (size > count ? `, … ${size.toLocaleString("en")}` : "");
  return isList ? `[${text}]` : `{${text}}`;
}

/** @param {any} value */
function firstKeys(value) {
  const keys = [];
  for (const key in value) if (keys.push(key) === PREVIEW_CHILDREN) break;
  return keys;
}

/** @param {string} cause of an error @returns {any} the object or array that it is the JSON of, or null */
export function causeValue(cause) {
  if (!/^\s*[{[]/.test(cause)) return null;
  try {
    return parseJson(cause);
  } catch {
    return null;
  }
}

/** The message of a function's error document, also if the rest of that was cut. */
const MESSAGE = /^\s*\{\s*"errorMessage"\s*:\s*("(?:[^"\\]|\\.)*("?))/s;

/**
 * What a cause says: functions put JSON with an `errorMessage` there.
 * @param {string | null | undefined} cause @returns {string}
 */
export function causeText(cause) {
  if (!cause) return "";
  const parsed = causeValue(cause);
  if (typeof parsed?.errorMessage === "string") return parsed.errorMessage;
  const [, text = "", end] = (parsed === null && MESSAGE.exec(cause)) || [];
  try {
    return text ? JSON.parse(end ? text : `${text.replace(/\\u[\da-fA-F]{0,3}$/, "")}…"`) : cause;
  } catch {
    return cause;
  }
}
