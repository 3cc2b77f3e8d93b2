/** JSON in which integers keep all their digits: those beyond 2^53 are BigInt. */

const LONG_NUMBER = /\d{16}/;
const NUMBER = /-?\d[\d.eE+-]*/g;
const LONG_INTEGER = /^-?\d{16,}$/;

/**
 * The value of a JSON text; integers that a number cannot hold exactly are BigInt. Throws SyntaxError.
 * @param {string} text
 * @returns {any}
 */
export function parseJson(text) {
  if (!LONG_NUMBER.test(text)) return JSON.parse(text);
  const source = sourceOf();
  if (source) return JSON.parse(text, source);
  JSON.parse(text); // so that the error is about the text as it is
  const mark = `int-${Math.random()}:`;
  return JSON.parse(markLongIntegers(text, mark), (_, value) =>
    typeof value === "string" && value.startsWith(mark) ? exact(value.slice(mark.length)) : value,
  );
}

/**
 * The JSON text of a value that may hold BigInts.
 * @param {any} value
 * @param {number} [indent] spaces of each level
 */
export function stringifyJson(value, indent) {
  const mark = `int-${Math.random()}:`;
  let isMarked = false;
  const text = JSON.stringify(
    value,
    (_, each) => {
      if (typeof each !== "bigint") return each;
      isMarked = true;
      return mark + each;
    },
    indent,
  );
  return isMarked ? text.replaceAll(new RegExp(`"${mark}(-?\\d+)"`, "g"), "$1") : text;
}

/** @param {string} digits */
function exact(digits) {
  const number = Number(digits);
  return Number.isSafeInteger(number) ? number : BigInt(digits);
}

/** A reviver that sees the source of numbers; null in browsers that do not show it. @returns {any} */
function sourceOf() {
  let isShown = false;
  /** @type {any} */
  const look = (/** @type {string} */ _key, /** @type {any} */ _value, /** @type {any} */ context) => {
    isShown = context?.source === "1";
  };
  JSON.parse("1", look);
  if (!isShown) return null;
  return (/** @type {string} */ _key, /** @type {any} */ value, /** @type {any} */ context) =>
    typeof value === "number" && !Number.isSafeInteger(value) && /^-?\d+$/.test(context.source)
      ? BigInt(context.source)
      : value;
}

/**
 * The text with its long integers as marked strings. Its strings are left as they are.
 * @param {string} text
 * @param {string} mark
 */
function markLongIntegers(text, mark) {
  const pieces = [];
  for (let at = 0; at < text.length; ) {
    const begin = text.indexOf('"', at);
    const between = begin < 0 ? text.slice(at) : text.slice(at, begin);
    pieces.push(between.replace(NUMBER, (number) => (LONG_INTEGER.test(number) ? `"${mark}${number}"` : number)));
    if (begin < 0) break;
    at = endOfString(text, begin);
    pieces.push(text.slice(begin, at));
  }
  return pieces.join("");
}

/**
 * @param {string} text
 * @param {number} begin where its opening quote is
 */
function endOfString(text, begin) {
  for (let end = text.indexOf('"', begin + 1); ; end = text.indexOf('"', end + 1)) {
    let slashes = 0;
    while (text[end - 1 - slashes] === "\\") slashes += 1;
    if (slashes % 2 === 0) return end + 1;
  }
}
