/** JSON objects that a person types. */

/**
 * The text as it was written, with all digits of its numbers. Throws an Error that says why it is no JSON object.
 * @param {string} text @param {string} what begins the error: "The input" @returns {string}
 */
export function objectText(text, what) {
  let value;
  try {
    value = JSON.parse(text);
  } catch (error) {
    throw new Error(`${what} is not JSON: ${/** @type {Error} */ (error).message}`);
  }
  if (value === null || typeof value !== "object" || Array.isArray(value)) throw new Error(`${what} must be a JSON object, such as {}.`);
  return text;
}
