/** Paths of steps as texts: `pack[17].label`. `[]` is any number of an iteration or a branch. As `base/step_paths.py`. */

/** @param {string} path @returns {string} with `[]` for every number */
const withoutNumbers = (path) => path.replace(/\[\d*\]/g, "[]");

/** Whether two paths can be of one step. @param {string} one @param {string} other @returns {boolean} */
export function agree(one, other) {
  if (withoutNumbers(one) !== withoutNumbers(other)) return false;
  const [mine, others] = [numbersOf(one), numbersOf(other)];
  return mine.every((each, index) => each === others[index] || each === "[]" || others[index] === "[]");
}

/** @param {string} path @returns {string[]} */
const numbersOf = (path) => path.match(/\[\d*\]/g) ?? [];
