/** Places as the server counts them (lines and columns from 1, in code points) and offsets as JavaScript counts them. */

/** What ends a line in YAML. */
const LINE_BREAK = /\r\n|[\n\r\x85\u2028\u2029]/g;

/**
 * Offsets of places in a text.
 * @param {string} text
 * @returns {(line: number, column: number) => number} an offset within the text, whatever place is asked for
 */
export function offsetsIn(text) {
  const start = text.startsWith("\ufeff") ? 1 : 0;
  const starts = [start, ...Array.from(text.matchAll(LINE_BREAK), (found) => found.index + found[0].length)];
  return (line, column) => {
    const from = starts[Math.min(Math.max(line, 1), starts.length) - 1];
    const end = line < starts.length ? starts[line] : text.length;
    let offset = from;
    for (let left = column - 1; left > 0 && offset < end; left--) offset += (text.codePointAt(offset) ?? 0) > 0xffff ? 2 : 1;
    return Math.min(offset, text.length);
  };
}
