/** Which loops of a timeline are open, and the page that is shown of each. */
import { useEffect, useMemo, useRef, useState } from "../vendor/preact.js";
import { agree } from "../step-paths.js";

export const PAGE = 100;
const RELOAD_MS = 1_000;

/** @typedef {import("./timeline-rows.js").Opened} Opened @typedef {import("./timeline-rows.js").Page} Page */
/** @typedef {Map<string, Page | {problem: any}>} Pages */
/**
 * @typedef {{opened: Map<string, Opened>, pages: Pages, open: (path: string) => void, close: (path: string) => void,
 *   turn: (path: string, by: number) => void, jump: (path: string, index: number) => void, filter: (path: string, status: string) => void,
 *   again: (path: string) => void}} Iterations  `again`: a page that could not be read
 */

/**
 * @param {import("./timeline.js").LoadIterations | undefined} load @param {string | number} revision @param {string | null} selected
 * @param {import("./timeline-rows.js").Step[]} steps
 * @returns {Iterations}
 */
export function useIterations(load, revision, selected, steps) {
  const [opened, setOpened] = useState(() => openedFor(selected, steps));
  const [pages, setPages] = useState(/** @type {Pages} */ (new Map()));
  const held = useRef(/** @type {Map<string, {question: string, revision: string | number, at: number, stop: AbortController}>} */ (new Map())).current;
  const latest = useRef({ load, pages, opened });
  latest.current = { load, pages, opened };

  useEffect(() => {
    for (const [path, each] of held) if (!opened.has(path)) (each.stop.abort(), held.delete(path));
    let timer = 0;
    for (const [path, state] of opened) {
      if (path.endsWith("]")) continue; // an iteration: what is in it is in the summary of the steps
      const question = `${state.status} ${state.begins.at(-1)}`;
      const before = held.get(path);
      if (before?.question === question && before.revision === revision) continue;
      const wait = before?.question === question ? before.at + RELOAD_MS - performance.now() : 0;
      if (wait > 0) timer = timer || setTimeout(() => read(path, state, question), wait);
      else read(path, state, question);
    }
    return () => clearTimeout(timer);
  }, [opened, revision]);
  useEffect(() => () => held.forEach((each) => each.stop.abort()), []);

  /** @param {string} path @param {Opened} state @param {string} question */
  async function read(path, state, question) {
    held.get(path)?.stop.abort();
    const stop = new AbortController();
    held.set(path, { question, revision, at: performance.now(), stop });
    /** @type {Page | {problem: any}} */
    let found;
    try {
      const begin = state.begins.at(-1) ?? 0;
      const page = await latest.current.load?.(path, { status: state.status, nextToken: begin ? String(begin) : null, limit: PAGE }, stop.signal);
      if (!page) return;
      found = page;
    } catch (problem) {
      found = { problem };
    }
    if (!stop.signal.aborted) setPages(new Map(latest.current.pages).set(path, found));
  }

  return useMemo(() => {
    const change = (/** @type {string} */ path, /** @type {Opened | null} */ state) => {
      const next = new Map(latest.current.opened);
      if (state) next.set(path, state);
      else for (const each of next.keys()) if (each === path || each.startsWith(`${path}[`) || each.startsWith(`${path}.`)) next.delete(each);
      latest.current.opened = next;
      setOpened(next);
    };
    return {
      opened,
      pages,
      open: (path) => change(path, { begins: [0], status: "" }),
      close: (path) => change(path, null),
      jump: (path, index) => change(path, { begins: [index - (index % PAGE)], status: "" }),
      again: (path) => {
        const state = opened.get(path);
        held.delete(path);
        if (state) change(path, { ...state });
      },
      filter: (path, status) => change(path, { begins: [0], status }),
      turn: (path, by) => {
        const state = opened.get(path);
        const page = pages.get(path);
        if (!state || !page || "problem" in page) return;
        const begin = state.begins.at(-1) ?? 0;
        if (by > 0 && page.nextToken) change(path, { ...state, begins: [...state.begins, Number(page.nextToken)] });
        else if (by < 0 && state.begins.length > 1) change(path, { ...state, begins: state.begins.slice(0, -1) });
        else if (by < 0 && begin && !state.status) change(path, { ...state, begins: [Math.max(0, begin - PAGE)] });
      },
    };
  }, [opened, pages]);
}

/** A page that opens with a step of an iteration selected shows that iteration. @param {string | null} selected @param {import("./timeline-rows.js").Step[]} steps */
function openedFor(selected, steps) {
  /** @type {Map<string, Opened>} */
  const opened = new Map();
  for (const match of selected?.matchAll(/\[(\d+)\]/g) ?? []) {
    const path = /** @type {string} */ (selected).slice(0, match.index);
    const index = Number(match[1]);
    if (steps.some((step) => step.iterations && agree(step.path, path))) {
      opened.set(path, { begins: [index - (index % PAGE)], status: "" });
      opened.set(`${path}[${index}]`, { begins: [0], status: "" });
    }
  }
  return opened;
}
