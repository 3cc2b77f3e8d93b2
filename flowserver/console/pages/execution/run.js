/** One execution as the page shows it: header, step summary, and what the stream of its events says. */
import { batch, signal, useEffect, useMemo } from "../../vendor/preact.js";
import { api, stream } from "../../store.js";
import { path } from "../../routes.js";
import { hasSameDocuments, withDocuments } from "./documents.js";

/**
 * @typedef {{path: string, status: string, entered: number, running: number, waiting: number, succeeded: number,
 *   failed: number, attempts: number, redrives: number, error: string | null, first: string, began: string, last: string,
 *   iterations: {total: number, done: number, failed: number, aborted: number, running: number} | null}} StepSummary
 * @typedef {{steps: StepSummary[], status: string, lastEventId: number, lastEventTime: string | null}} Summary
 */

const SUMMARY_MS = 250;
/** Parking gives no event, and a redrive by others restarts what had ended: both are seen by looking. */
const LOOK_MS = 15_000;
const LOOK_AT_ENDED_MS = 60_000;
const LOOK_SOON_MS = 1_000;
const STEPS_PAGE = 1_000;
const STEPS_MAX = 5_000;

export class Run {
  /** @param {string} flow @param {string} name */
  constructor(flow, name) {
    this.apiPath = path`v1/flows/${flow}/executions/${name}`;
    /** @type {import("../../vendor/preact.js").Signal<any>} */
    this.execution = signal(null);
    this.error = signal(/** @type {any} */ (null));
    /** The summary as it is now. */
    this.now = signal(/** @type {Summary | null} */ (null));
    this.lastEventId = signal(0);
    this.stop = new AbortController();
    /** @type {Set<(events: any[]) => void>} */
    this.listeners = new Set();
    this.isStreaming = false;
    this.summaryTimer = 0;
    this.summaryAt = -Infinity;
    this.isReading = false;
    this.isStale = false;
    this.lookTimer = 0;
    /** Looks may overtake each other: what an earlier one says after a later one is old. */
    this.looks = 0;
    this.lastLook = 0;
    this.soonTimer = 0;
  }

  open() {
    document.addEventListener("visibilitychange", this.onVisible);
    void this.look();
    void this.readNewest();
    void this.readSummary();
  }

  /** How many events there are is known long before the summary of a long history. */
  async readNewest() {
    try {
      const page = await api(`${this.apiPath}/events`, { query: { order: "desc", limit: 1 }, signal: this.stop.signal });
      this.lastEventId.value = Math.max(this.lastEventId.peek(), page.events[0]?.eventId ?? 0);
    } catch {
      // The reader of the execution says what is wrong.
    }
  }

  close() {
    this.stop.abort();
    clearTimeout(this.summaryTimer);
    clearTimeout(this.lookTimer);
    clearTimeout(this.soonTimer);
    document.removeEventListener("visibilitychange", this.onVisible);
  }

  onVisible = () => {
    if (document.hidden) return;
    if (this.isStale) this.refresh();
    void this.look();
  };

  /** Read the execution itself, and follow it if it runs. Its documents are read only when they may have changed. */
  look = async () => {
    clearTimeout(this.lookTimer);
    let number = (this.looks += 1);
    try {
      const known = this.execution.peek();
      let found = known && (await this.read(false));
      if (found && hasSameDocuments(known, found)) found = withDocuments(found, known);
      else {
        number = this.looks += 1;
        found = await this.read(true);
      }
      if (number < this.lastLook) return;
      this.lastLook = number;
      batch(() => {
        this.execution.value = found;
        this.error.value = null;
      });
      if (this.now.peek() && found.status === "Running") this.follow();
      if (!this.now.peek() && !this.isReading) this.refresh();
    } catch (error) {
      if (this.stop.signal.aborted || number < this.lastLook) return;
      this.error.value = error;
    }
    if (!this.stop.signal.aborted) {
      clearTimeout(this.lookTimer);
      const wait = this.execution.peek()?.status === "Running" ? LOOK_MS : LOOK_AT_ENDED_MS;
      this.lookTimer = setTimeout(() => !document.hidden && this.look(), wait);
    }
  };

  /** @param {boolean} documents @returns {Promise<any>} */
  read(documents) {
    return api(this.apiPath, { query: { currentSteps: true, documents }, signal: this.stop.signal });
  }

  /** After a change that this page made: read everything again. */
  reload = async () => {
    await this.look();
    await this.readSummary();
  };

  /** Read the summary soon; often asked, it is read every SUMMARY_MS at most, and never while the page is hidden. */
  refresh() {
    this.isStale = true;
    if (this.summaryTimer || this.isReading || document.hidden) return;
    const wait = Math.max(0, this.summaryAt + SUMMARY_MS - performance.now());
    this.summaryTimer = setTimeout(() => {
      this.summaryTimer = 0;
      void this.readSummary();
    }, wait);
  }

  async readSummary() {
    if (this.isReading) {
      this.isStale = true;
      return;
    }
    clearTimeout(this.summaryTimer);
    this.summaryTimer = 0;
    this.isReading = true;
    this.isStale = false;
    try {
      const summary = await readSummary(this.apiPath, null, this.stop.signal);
      const isFirst = this.now.peek() === null;
      const isOver = summary.status !== "Running" && this.execution.peek()?.status === "Running";
      batch(() => {
        this.now.value = summary;
        this.lastEventId.value = Math.max(this.lastEventId.peek(), summary.lastEventId);
        this.error.value = null;
      });
      if (isFirst && this.execution.peek()?.status === "Running") this.follow();
      if (isOver) void this.look();
    } catch (error) {
      if (!this.stop.signal.aborted) this.error.value = error;
    }
    this.isReading = false;
    this.summaryAt = performance.now();
    if (this.isStale) this.refresh();
  }

  /** Follow the events from the last one that is known. */
  follow() {
    if (this.isStreaming || this.stop.signal.aborted) return;
    this.isStreaming = true;
    const onEnd = (/** @type {any} */ error) => {
      this.isStreaming = false;
      this.refresh();
      if (!error) void this.look(); // else the next look follows again
    };
    const query = { paths: true, after: this.lastEventId.peek() };
    void stream(`${this.apiPath}/events/stream`, query, (events) => this.take(events), { signal: this.stop.signal, onEnd });
  }

  /** @param {any[]} events */
  take(events) {
    const last = events[events.length - 1].eventId;
    const isTurn = events.some((event) => WAITS.has(event.type));
    batch(() => {
      if (last > this.lastEventId.peek()) this.lastEventId.value = last;
      for (const listener of this.listeners) listener(events);
    });
    this.refresh();
    if (isTurn) this.lookSoon();
  }

  /** The execution itself is read again after events that change what its steps wait for, but not often. */
  lookSoon() {
    this.soonTimer ||= setTimeout(() => {
      this.soonTimer = 0;
      if (!document.hidden) void this.look();
    }, LOOK_SOON_MS);
  }
}

const WAITS = new Set(["TaskSubmitted", "StepWaitingForRedrive", "TaskFailed", "ExecutionRedriven", "StepEntered"]);

/**
 * The whole summary, of all pages.
 * @param {string} apiPath @param {number | null} at after which event; null: now @param {AbortSignal} signal
 * @returns {Promise<Summary>}
 */
export async function readSummary(apiPath, at, signal) {
  /** @type {StepSummary[]} */
  const steps = [];
  let nextToken = null;
  let page;
  do {
    page = await api(`${apiPath}/steps`, { query: { at, limit: STEPS_PAGE, nextToken }, signal });
    steps.push(...page.steps);
    nextToken = page.nextToken;
  } while (nextToken !== null && steps.length < STEPS_MAX);
  return { ...page, steps };
}

/** @param {string} flow @param {string} name @returns {Run} */
export function useRun(flow, name) {
  const run = useMemo(() => new Run(flow, name), [flow, name]);
  useEffect(() => {
    run.open();
    return () => run.close();
  }, [run]);
  return run;
}
