/** The events of an execution, loaded by page where they are looked at. Only their rows are kept, and of these a bounded number. */
import { signal } from "../../vendor/preact.js";
import { Rest, api } from "../../store.js";
import { rowOf } from "./event-rows.js";

/** @typedef {import("./event-rows.js").EventRow} EventRow */
/** @typedef {import("../../parts/events.js").EventRows} EventRows */

const PAGE = 100;
const PATHS_AGAIN_MS = 15_000;
const ROWS_MAX = 20_000;

/**
 * All events, by their ids, which count from 1 without gaps: any part of the history is one request away.
 * @implements {EventRows}
 */
export class AllEvents {
  /** @param {string} path of the events @param {boolean} isNewestFirst */
  constructor(path, isNewestFirst) {
    this.path = path;
    this.isNewestFirst = isNewestFirst;
    /** @type {Map<number, EventRow>} */
    this.rows = new Map();
    /** Grows when a row or the count has changed. */
    this.changes = signal(0);
    this.count = 0;
    this.isWhole = true;
    /** @type {any} */
    this.error = null;
    this.loading = false;
    this.rest = new Rest();
    /** @type {[number, number] | null} */
    this.wanted = null;
    /** The server reads a whole history before it knows a path. Until then rows have the names of their steps. */
    this.hasPaths = false;
    this.isAsking = false;
    this.pathsTimer = 0;
    this.stop = new AbortController();
  }

  /** @param {number} index */
  rowAt = (index) => this.rows.get(this.isNewestFirst ? this.count - index : index + 1);

  /** @param {number} id */
  indexOf = (id) => (this.isNewestFirst ? this.count - id : id - 1);

  loaded = () => [...this.rows.values()].sort((a, b) => (this.isNewestFirst ? b.id - a.id : a.id - b.id));

  /** @param {number} count how many events there are by now */
  grow(count) {
    if (count <= this.count) return;
    this.count = count;
    this.changes.value += 1;
  }

  /** Rows that came by the stream. @param {any[]} events */
  add(events) {
    for (const event of events) this.rows.set(event.eventId, rowOf(event));
    this.forget();
    this.count = Math.max(this.count, events[events.length - 1]?.eventId ?? 0);
    this.changes.value += 1;
  }

  /** Load what is missing among these rows. @param {number} first @param {number} last indexes */
  need = (first, last) => {
    const [low, high] = this.isNewestFirst ? [this.count - last, this.count - first] : [first + 1, last + 1];
    this.wanted = [Math.max(1, low), Math.min(high, this.count)];
    if (!this.loading && !this.rest.isOn) void this.load();
  };

  async load() {
    for (;;) {
      const missing = this.firstMissing();
      if (missing === null) return;
      this.loading = true;
      try {
        const query = { after: missing - 1, limit: PAGE, paths: this.hasPaths };
        const page = await api(this.path, { query, signal: this.stop.signal });
        for (const event of page.events) this.rows.set(event.eventId, rowOf(event));
        // What cannot be read is left out of the page, and must not be asked for again.
        const found = new Set(page.events.map((/** @type {any} */ event) => event.eventId));
        const end = page.events.at(-1)?.eventId ?? missing;
        for (let id = missing; id <= end; id += 1) if (!found.has(id)) this.rows.set(id, lostRow(id));
        this.error = null;
        this.forget();
      } catch (error) {
        if (this.stop.signal.aborted) return;
        this.error = error;
        this.wanted = null;
        this.rest.begin(error, () => this.load());
      }
      this.loading = false;
      this.changes.value += 1;
    }
  }

  /** @param {number} id */
  isMissing(id) {
    const row = this.rows.get(id);
    return !row || (this.hasPaths && !row.isPlaced);
  }

  /** Let the server find the paths. It reads the whole history for that, so nothing more urgent should wait behind it. */
  async askForPaths() {
    if (this.isAsking) return;
    this.isAsking = true;
    try {
      await api(this.path, { query: { limit: 1, paths: true }, signal: this.stop.signal });
    } catch {
      // The rows say what they can until then.
      if (!this.stop.signal.aborted) this.pathsTimer = setTimeout(() => ((this.isAsking = false), this.askForPaths()), PATHS_AGAIN_MS);
      return;
    }
    this.hasPaths = true;
    this.changes.value += 1;
  }

  firstMissing() {
    if (!this.wanted) return null;
    const [low, high] = this.wanted;
    for (let id = low; id <= high; id += 1) if (this.isMissing(id)) return id;
    return null;
  }

  /** Drop the rows that are furthest from what is looked at. */
  forget() {
    if (this.rows.size <= ROWS_MAX) return;
    const middle = this.wanted ? (this.wanted[0] + this.wanted[1]) / 2 : this.count;
    const far = [...this.rows.keys()].sort((a, b) => Math.abs(b - middle) - Math.abs(a - middle));
    for (const id of far.slice(0, this.rows.size - ROWS_MAX * 0.8)) this.rows.delete(id);
  }

  close() {
    clearTimeout(this.pathsTimer);
    this.rest.end();
    this.stop.abort();
  }
}

/** @param {number} id @returns {EventRow} */
function lostRow(id) {
  return { id, cause: 0, type: "", name: "", path: "", isPlaced: true, at: NaN, text: "cannot be read", tone: "none" };
}

/** Events of a step or of some types, page after page. @implements {EventRows} */
export class SomeEvents {
  /** @param {string} path @param {boolean} isNewestFirst @param {{step?: string, type?: string[]}} filter */
  constructor(path, isNewestFirst, filter) {
    this.path = path;
    this.filter = { ...filter, order: isNewestFirst ? "desc" : "asc" };
    /** @type {EventRow[]} */
    this.rows = [];
    this.changes = signal(0);
    this.isWhole = false;
    /** @type {any} */
    this.error = null;
    this.loading = false;
    this.rest = new Rest();
    /** @type {string | null} */
    this.next = null;
    this.last = 0;
    /** What the stream brings while a page is on its way, which may have been read before. @type {EventRow[]} */
    this.meanwhile = [];
    this.stop = new AbortController();
    void this.load();
  }

  get count() {
    return this.rows.length;
  }

  /** @param {number} index */
  rowAt = (index) => this.rows[index];

  /** @param {number} id */
  indexOf = (id) => this.rows.findIndex((row) => row.id === id);

  loaded = () => this.rows;

  /** @param {number} _first @param {number} last */
  need = (_first, last) => {
    this.last = last;
    if (last >= this.rows.length - 1 && !this.isWhole && !this.loading && !this.rest.isOn) void this.load();
  };

  async load() {
    this.loading = true;
    try {
      do {
        const query = { ...this.filter, limit: PAGE, paths: true, nextToken: this.next };
        const page = await api(this.path, { query, signal: this.stop.signal });
        this.next = page.nextToken;
        this.isWhole = this.next === null;
        this.merge([...page.events.map(rowOf), ...(this.isWhole ? this.meanwhile : [])]);
        this.changes.value += 1;
      } while (!this.isWhole && this.rows.length <= Math.max(this.last, PAGE / 2));
      this.error = null;
    } catch (error) {
      if (this.stop.signal.aborted) return;
      this.error = error;
      this.rest.begin(error, () => this.load());
    }
    this.meanwhile = [];
    this.loading = false;
    this.changes.value += 1;
  }

  /** Rows that came by the stream, if they belong here. @param {any[]} events */
  add(events) {
    const { step, type, order } = this.filter;
    const fitting = events.map(rowOf).filter((row) => (!type || type.includes(row.type)) && (!step || isOf(row, step)));
    if (!fitting.length) return;
    if (order === "desc" || this.isWhole) this.merge(fitting);
    else if (this.loading) this.meanwhile.push(...fitting);
    this.changes.value += 1;
  }

  /** A page and the stream may both have a row. @param {EventRow[]} rows */
  merge(rows) {
    const sign = this.filter.order === "desc" ? -1 : 1;
    const all = new Map([...this.rows, ...rows].map((row) => [row.id, row]));
    this.rows = [...all.values()].sort((one, other) => sign * (one.id - other.id));
  }

  grow() {}

  askForPaths() {}

  close() {
    this.rest.end();
    this.stop.abort();
  }
}

/** As the server's `step` chooses. @param {EventRow} row @param {string} step */
function isOf(row, step) {
  if (!/[.[]/.test(step)) return row.name === step;
  const pattern = step.replace(/[.*+?^${}()|\\]/g, "\\$&").replace(/\[(\d*)\]/g, (_, index) => `\\[${index || "\\d+"}\\]`);
  return new RegExp(`^${pattern}${step.endsWith("]") ? "(\\..*)?" : ""}$`).test(row.path);
}
