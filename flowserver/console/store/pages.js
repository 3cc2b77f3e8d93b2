/** Lists that come page by page, by keyset: `nextToken` of one page asks for the next. */
import { signal, useEffect, useRef } from "../vendor/preact.js";
import { changeMany } from "./bulk.js";
import { mayRead } from "./needs.js";
import { api, urlOf } from "./requests.js";
import { Rest } from "./rest.js";
import { session } from "./session.js";

/**
 * @typedef {import("./requests.js").ApiQuery} ApiQuery
 * @typedef {{rows: any[], loading: boolean, error: any, done: boolean, fresh: number, gone: Set<string>,
 *   paused: boolean}} ListState
 * @typedef {{token: string | undefined, start: number, length: number}} LoadedPage
 */

/** Pages without a match that are read in a row before the list asks whether to go on: each costs the server a scan. */
const EMPTY_PAGES_MAX = 4;
/** Rows that a check for new ones reads at least. */
const CHECKED_MIN = 5;

/** @type {ListState} */
const BEGIN = { rows: [], loading: true, error: null, done: false, fresh: 0, gone: new Set(), paused: false };

class List {
  /**
   * @param {string} path @param {ApiQuery} query @param {string} listName @param {(row: any) => boolean} isLive
   * @param {((row: any) => string) | undefined} placeOf @param {any[]} before rows shown until the first come
   */
  constructor(path, query, listName, isLive, placeOf, before) {
    this.path = path;
    this.query = query;
    this.listName = listName;
    this.isLive = isLive;
    this.placeOf = placeOf;
    this.state = signal({ ...BEGIN, rows: before });
    this.aborting = new AbortController();
    /** @type {string | undefined} */
    this.token = undefined;
    /** @type {LoadedPage[]} */
    this.pages = [];
    this.isReading = false;
    this.isChecking = false;
    /** Rows that were changed from here, by id, until they are read again. @type {Set<string>} */
    this.changed = new Set();
    this.rest = new Rest();
  }

  /** Whether the row may be otherwise by now. @param {any} row */
  isPassing(row) {
    return this.isLive(row) || this.changed.has(row.id);
  }

  /** Renew these rows with the next checks that see them. @param {string[]} ids @param {number} first @param {number} last rows that are visible */
  async renew(ids, first, last) {
    for (const id of ids) this.changed.add(id);
    await this.check(first, last);
  }

  /** @param {string} [nextToken] @param {number} [limit] @returns {Promise<{rows: any[], token: string | undefined}>} */
  async page(nextToken, limit) {
    const query = { ...this.query, ...(limit && { limit }), nextToken };
    const answer = await api(this.path, { query, signal: this.aborting.signal });
    return { rows: answer[this.listName], token: answer.nextToken ?? undefined };
  }

  async more() {
    const now = this.state.peek();
    if (this.isReading || this.rest.isOn || (now.done && !now.error)) return;
    this.isReading = true;
    this.state.value = { ...now, loading: true, error: null, paused: false };
    try {
      await this.readUntilRows();
    } catch (error) {
      if (this.aborting.signal.aborted) return;
      const rows = this.pages.length ? this.state.peek().rows : [];
      this.state.value = { ...this.state.peek(), rows, loading: false, error };
      this.rest.begin(error, () => this.more());
    } finally {
      this.isReading = false;
    }
  }

  async readUntilRows() {
    for (let empty = 0; ; empty += 1) {
      const asked = this.token;
      const page = await this.page(asked);
      const isFirst = !this.pages.length;
      const known = isFirst ? [] : this.state.peek().rows;
      this.pages.push({ token: asked, start: known.length, length: page.rows.length });
      this.token = page.token;
      const done = page.token === undefined;
      const paused = !done && !page.rows.length && empty >= EMPTY_PAGES_MAX;
      const isOver = done || paused || page.rows.length > 0;
      this.state.value = { ...this.state.peek(), rows: [...known, ...page.rows], loading: !isOver, done, paused };
      if (isOver) return;
    }
  }

  /**
   * Look for rows that came meanwhile, and renew what is on screen and may change, in place: nothing moves. `fresh`
   * counts rows that would come first; `gone` are rows that the list would no longer have. It reads no more rows than
   * it must, because every open console does so all the time.
   * @param {number} first @param {number} last rows that are visible
   */
  async check(first, last) {
    if (this.isReading || this.isChecking || !this.pages.length) return;
    this.isChecking = true;
    const changed = new Set(this.changed);
    try {
      for (const [index, loaded] of this.pages.entries()) {
        const rows = this.state.peek().rows.slice(loaded.start, Math.min(loaded.start + loaded.length, last + 1));
        const needed = 1 + rows.findLastIndex((row, offset) => loaded.start + offset >= first && this.isPassing(row));
        if (index === 0) await this.checkFirst(loaded, needed);
        else if (needed) this.merge(loaded, await this.page(loaded.token, needed), false);
      }
      await this.renewAlone(first, last);
      const seen = new Set(this.state.peek().rows.slice(first, last + 1).map((row) => row.id));
      for (const id of changed) if (seen.has(id)) this.changed.delete(id);
    } catch {
      // The next check tries again; the frame says that the server cannot be reached.
    } finally {
      this.isChecking = false;
    }
    // What was changed while the check ran was perhaps read before the change.
    if (![...this.changed].every((id) => changed.has(id))) await this.check(first, last);
  }

  /** Whether the newest page has nothing any more of what is shown, so that reading it again would tell nothing. */
  get isBeyond() {
    return this.placeOf !== undefined && this.state.peek().fresh >= Number(this.query.limit);
  }

  /** @param {LoadedPage} loaded @param {number} needed */
  async checkFirst(loaded, needed) {
    if (this.isBeyond) return;
    const known = new Set(this.state.peek().rows.map((row) => row.id));
    const asked = Math.min(Number(this.query.limit ?? needed), Math.max(CHECKED_MIN, needed + this.state.peek().fresh));
    const some = await this.page(undefined, asked);
    const areNew = some.token !== undefined && some.rows.every((row) => !known.has(row.id));
    this.merge(loaded, areNew ? await this.page() : some, true);
  }

  /** @param {LoadedPage} loaded @param {{rows: any[], token: string | undefined}} page @param {boolean} isFirst */
  merge(loaded, page, isFirst) {
    const now = this.state.peek();
    const read = new Map(page.rows.map((row) => [row.id, row]));
    const lastKnown = now.rows.findLastIndex((row) => read.has(row.id));
    const end = page.token === undefined ? loaded.start + loaded.length - 1 : lastKnown;
    const gone = new Set(now.gone);
    const rows = now.rows.map((row, index) => {
      const renewed = read.get(row.id);
      if (renewed) gone.delete(row.id);
      else if (index >= loaded.start && index <= end) gone.add(row.id);
      return renewed && JSON.stringify(renewed) !== JSON.stringify(row) ? renewed : row;
    });
    const known = new Set(now.rows.map((row) => row.id));
    const newest = page.rows.findIndex((row) => known.has(row.id));
    const fresh = newest < 0 ? page.rows.length : newest;
    this.state.value = { ...now, rows, gone, fresh: isFirst ? fresh : now.fresh };
  }

  /**
   * Read the live rows on screen one by one that no page has any more: they would be shown for ever as they were in it.
   * @param {number} first @param {number} last rows that are visible
   */
  async renewAlone(first, last) {
    const { placeOf, isBeyond } = this;
    if (!placeOf) return;
    const { rows, gone } = this.state.peek();
    const pageEnd = this.pages[0].length;
    const { signal } = this.aborting;
    /** @type {Map<string, any>} */
    const renewed = new Map();
    const renew = async (/** @type {any} */ row) => {
      const whole = await api(placeOf(row), { signal });
      renewed.set(row.id, Object.fromEntries(Object.keys(row).map((field) => [field, whole[field]])));
    };
    const missing = rows.filter(
      (row, index) => index >= first && index <= last && (gone.has(row.id) || (isBeyond && index < pageEnd)) && this.isPassing(row),
    );
    await changeMany(missing, renew, { signal });
    if (renewed.size) this.state.value = { ...this.state.peek(), rows: this.state.peek().rows.map((row) => renewed.get(row.id) ?? row) };
  }

  stop() {
    this.rest.end();
    this.aborting.abort();
  }
}

/**
 * A list that is read page by page; rows have an `id`. While the question changes, the rows of the question before stay, if they are of the same kind.
 * With `everySeconds` it looks for changes so often while the tab is visible: `fresh` is how many new rows wait for a
 * `reload`. `paused`: very many were looked at without a match; `more` goes on. `onVisible` takes the first and last
 * index of the rows on screen, which are renewed if they are live; with `placeOf` also those that have left the list.
 * @param {string | null} path @param {ApiQuery} query `limit`: rows of a page
 * @param {string} listName @param {{everySeconds?: number, isLive?: (row: any) => boolean, placeOf?: (row: any) => string}} [options]
 *   `isLive`: it may change; `placeOf`: the URL of the API that has the fields of the row, and may have more
 */
export function usePages(path, query, listName, { everySeconds = 0, isLive = () => true, placeOf } = {}) {
  if (path !== null && !mayRead(path)) path = null;
  const held = useRef(/** @type {{key: string, list: List | null}} */ ({ key: "", list: null })).current;
  const times = useRef(signal(0)).current;
  const visible = useRef({ first: 0, last: 0 }).current;
  const { number } = session.value;
  const key = path === null ? "" : `${number} ${times.value} ${urlOf(path, query)}`;
  if (held.key !== key) {
    const isSameKind = held.key.startsWith(`${number} `) && held.list?.listName === listName;
    const before = isSameKind ? (held.list?.state.peek().rows ?? []) : [];
    held.list?.stop();
    held.key = key;
    held.list = path === null ? null : new List(path, query, listName, isLive, placeOf, before);
  }
  const list = held.list;
  useEffect(() => {
    list?.more();
    return () => list?.stop();
  }, [list]);
  useEffect(() => {
    if (!list || !everySeconds) return;
    const check = () => {
      if (!document.hidden && session.peek().wanted === null) list.check(visible.first, visible.last);
    };
    const timer = setInterval(check, everySeconds * 1_000);
    document.addEventListener("visibilitychange", check);
    return () => {
      clearInterval(timer);
      document.removeEventListener("visibilitychange", check);
    };
  }, [list, everySeconds]);
  const state = list ? list.state.value : { ...BEGIN, loading: false };
  return {
    ...state,
    isFirst: !list?.pages.length,
    more: () => list?.more(),
    reload: () => (times.value += 1),
    check: () => list?.check(visible.first, visible.last),
    renew: (/** @type {string[]} */ ids) => list?.renew(ids, visible.first, visible.last),
    onVisible: (/** @type {number} */ first, /** @type {number} */ last) => Object.assign(visible, { first, last }),
  };
}
