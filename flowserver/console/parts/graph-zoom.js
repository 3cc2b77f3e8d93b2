/** Zoom and pan of a drawing: the wheel, dragging, and buttons. The drawing itself is not painted anew. */
import { useEffect, useLayoutEffect, useMemo, useRef } from "../vendor/preact.js";
import { select, zoom, zoomIdentity, zoomTransform } from "../vendor/zoom.js";

/** @typedef {import("./graph-layout.js").Box} Box */

const MOST = 2;
const LEAST = 0.002;
const READABLE = 0.65;
const MARGIN = 20;
const STEP = 1.3;

/**
 * @param {{current: SVGSVGElement | null}} frame @param {{current: SVGGElement | null}} drawing
 * @param {{w: number, h: number, entry: number}} size of the drawing, and where it begins
 */
export function useZoom(frame, drawing, size) {
  const touched = useRef(false);
  const latest = useRef(size);
  latest.current = size;
  const behaviour = useMemo(
    () =>
      zoom()
        .scaleExtent([LEAST, MOST])
        .on("zoom", (/** @type {any} */ event) => {
          drawing.current?.setAttribute("transform", event.transform.toString());
          if (event.sourceEvent) touched.current = true;
        }),
    [],
  );
  const controls = useMemo(() => {
    const move = (/** @type {any} */ transform) => frame.current && select(frame.current).call(behaviour.transform, transform);
    return {
      /** Show all of it; to begin with no smaller than can be read, from its start. @param {boolean} [isWhole] */
      fit(isWhole = true) {
        const { clientWidth: w, clientHeight: h } = frame.current ?? { clientWidth: 0, clientHeight: 0 };
        if (!w || !h) return;
        touched.current = isWhole;
        const { w: wide, h: high, entry } = latest.current;
        const whole = Math.min((w - 2 * MARGIN) / wide, (h - 2 * MARGIN) / high, 1);
        const scale = Math.max(whole, isWhole ? LEAST : READABLE);
        const left = wide * scale > w ? w / 2 - entry * scale : (w - wide * scale) / 2;
        move(zoomIdentity.translate(left, Math.max(MARGIN, (h - high * scale) / 2)).scale(scale));
      },
      /** @param {number} steps */
      zoomBy(steps) {
        touched.current = true;
        if (frame.current) select(frame.current).call(behaviour.scaleBy, STEP ** steps);
      },
      /** Move a step into view, unless it is. @param {Box} box */
      reveal(box) {
        if (!frame.current?.clientWidth) return;
        const now = zoomTransform(frame.current);
        const [left, top] = now.apply([box.x, box.y]);
        const [right, bottom] = now.apply([box.x + Math.min(box.w, 300), box.y + box.head]);
        const { clientWidth: w, clientHeight: h } = frame.current;
        const dx = left < MARGIN ? MARGIN - left : right > w - MARGIN ? w - MARGIN - right : 0;
        const dy = top < MARGIN ? MARGIN - top : bottom > h - MARGIN ? h - MARGIN - bottom : 0;
        if (dx || dy) move(zoomIdentity.translate(now.x + dx, now.y + dy).scale(now.k));
      },
    };
  }, []);
  useLayoutEffect(() => {
    if (!frame.current) return;
    const around = select(frame.current);
    around.call(behaviour).on("dblclick.zoom", null);
    const watcher = new ResizeObserver(() => touched.current || controls.fit(false));
    watcher.observe(frame.current);
    return () => {
      watcher.disconnect();
      around.on(".zoom", null);
    };
  }, []);
  useEffect(() => {
    if (!touched.current) controls.fit(false);
  }, [size.w, size.h]);
  return controls;
}
