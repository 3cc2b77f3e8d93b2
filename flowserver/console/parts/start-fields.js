/** Fields of an execution's input, guessed from what a definition reads: `$input.customer.name` is a field. */
import { html } from "../vendor/preact.js";

const FIELDS_MAX = 30;
const REFERENCE = /\$input((?:\.[A-Za-z_][\w-]*)+)/g;

/**
 * The paths that a definition reads of `$input`, without those that a foreach sets.
 * @param {string} definition @param {string[]} [set] names that foreach steps set
 * @returns {string[][]}
 */
export function fieldsOf(definition, set = []) {
  /** @type {Map<string, string[]>} */
  const found = new Map();
  for (const [, path] of definition.matchAll(REFERENCE)) {
    const names = path.slice(1).split(".");
    if (!set.includes(names[0])) found.set(path, names);
  }
  const paths = [...found.keys()];
  const leaves = paths.filter((path) => !paths.some((other) => other.startsWith(`${path}.`)));
  return leaves.slice(0, FIELDS_MAX).map((path) => /** @type {string[]} */ (found.get(path)));
}

/**
 * The input as JSON text. What is JSON is taken as it is, with all its digits; anything else is a text; empty fields are
 * left out.
 * @param {string[][]} fields @param {Record<string, string>} values by path with dots
 */
export function inputText(fields, values) {
  /** @typedef {Map<string, string | Tree>} Tree */
  const root = /** @type {Tree} */ (new Map());
  for (const names of fields) {
    const given = valueOf(values, names.join(".")).trim();
    if (!given) continue;
    let tree = root;
    for (const name of names.slice(0, -1)) {
      const inner = tree.get(name);
      const next = inner instanceof Map ? inner : /** @type {Tree} */ (new Map());
      tree.set(name, next);
      tree = next;
    }
    tree.set(names[names.length - 1], isJson(given) ? given : JSON.stringify(given));
  }
  /** @param {Tree} tree @param {string} indent @returns {string} */
  const written = (tree, indent) => {
    const lines = [...tree].map(([name, value]) => `${indent}  ${JSON.stringify(name)}: ${value instanceof Map ? written(value, `${indent}  `) : value}`);
    return lines.length ? `{\n${lines.join(",\n")}\n${indent}}` : "{}";
  };
  return written(root, "");
}

/** A field may have the name of a property that every object has, such as `constructor`. @param {Record<string, string>} values @param {string} path */
function valueOf(values, path) {
  return Object.hasOwn(values, path) ? values[path] : "";
}

/** @param {string} text */
function isJson(text) {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}

/** @param {{fields: string[][], values: Record<string, string>, onChange: (values: Record<string, string>) => void}} props */
export function StartFields({ fields, values, onChange }) {
  return html`<div role="group" aria-label="Input">
    <p class="muted">The definition reads these. Numbers, <code>true</code>, <code>[…]</code> and <code>{…}</code> are taken as JSON, anything else as a text; empty fields are left out.</p>
    ${fields.map((names) => {
      const path = names.join(".");
      return html`<label class="field" key=${path}>
        <span class="mono">${path}</span>
        <input value=${valueOf(values, path)} spellcheck=${false} autocomplete="off" onInput=${(/** @type {any} */ event) => onChange({ ...values, [path]: event.currentTarget.value })} />
      </label>`;
    })}
  </div>`;
}
