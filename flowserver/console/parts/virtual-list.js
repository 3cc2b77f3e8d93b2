/** Rows of one height, of which only those on screen exist: the library's virtualizer as a hook. */
import { useEffect, useLayoutEffect, useRef, useState } from "../vendor/preact.js";
import { Virtualizer, elementScroll, observeElementOffset, observeElementRect } from "../vendor/virtual.js";

/**
 * @param {{count: number, rowPx: number, view: {current: HTMLElement | null}}} given
 * @returns {{items: {index: number, start: number}[], height: number, show: (index: number, where?: "auto" | "center" | "end") => void}}
 */
export function useVirtualRows({ count, rowPx, view }) {
  const [, paint] = useState(0);
  const held = useRef(/** @type {Virtualizer<HTMLElement, HTMLElement> | null} */ (null));
  const options = {
    count,
    getScrollElement: () => view.current,
    estimateSize: () => rowPx,
    overscan: 12,
    scrollToFn: elementScroll,
    observeElementRect,
    observeElementOffset,
    onChange: () => paint((before) => before + 1),
  };
  held.current ??= new Virtualizer(options);
  const rows = held.current;
  rows.setOptions(options);
  useEffect(() => rows._didMount(), []);
  useLayoutEffect(() => rows._willUpdate());
  return {
    items: rows.getVirtualItems(),
    height: rows.getTotalSize(),
    show: (index, where = "auto") => rows.scrollToIndex(index, { align: where }),
  };
}
