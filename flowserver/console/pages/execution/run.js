/** One execution as the page shows it: header, step summary, and what the stream of its events says. */
import { batch, signal, useEffect, useMemo } from "../../vendor/preact.js";
import { api, stream } from "../../store.js";
import { path } from "../../routes.js";
import { hasSameDocuments, withDocuments } from "./documents.js";
import { readSummary, withChanges, withLater } from "./summaries.js";

/** @typedef {import("./summaries.js").StepSummary} StepSummary */
/** @typedef {import("./summaries.js").Summary} Summary */

const SUMMARY_MS = 250;
/** Parking gives no event, and a redrive by others restarts what had ended: both are seen by looking. */
const LOOK_MS = 15_000;
const LOOK_SOON_MS = 1_000;
/** How long the server may count a long history before the page shows how far it is; each time twice as long. */
const FIRST_SECONDS = 0.2;
const SECONDS_MAX = 60;

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
    /** Whether the last read of the summary failed: the next look tries again. */
    this.hasFailed = false;
    this.lookTimer = 0;
    this.lookAt = -Infinity;
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
    this.lookAt = performance.now();
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
      if (this.now.peek()?.complete && found.status === "Running") this.follow();
      if (this.hasFailed && !this.isReading) this.refresh();
    } catch (error) {
      if (this.stop.signal.aborted || number < this.lastLook) return;
      this.error.value = error;
    }
    if (!this.stop.signal.aborted) {
      clearTimeout(this.lookTimer);
      this.lookTimer = setTimeout(() => !document.hidden && this.look(), LOOK_MS);
    }
  };

  /** @param {boolean} documents @returns {Promise<any>} */
  async read(documents) {
    const readAfter = this.now.peek()?.lastEventId ?? 0;
    const found = await api(this.apiPath, { query: { currentSteps: true, documents }, signal: this.stop.signal });
    return { ...found, readAfter };
  }

  /** After a change that this page made: read everything again. */
  reload = async () => {
    await this.look();
    await this.readSummary();
  };

  /** Read the summary anew, soon: every SUMMARY_MS at most, and never while the page is hidden. */
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
      let isComplete = false;
      for (let seconds = FIRST_SECONDS; !isComplete; seconds = Math.min(2 * seconds, SECONDS_MAX)) {
        const summary = await readSummary(this.apiPath, null, this.stop.signal, seconds);
        isComplete = summary.complete;
        this.show(summary);
      }
      this.hasFailed = false;
    } catch (error) {
      this.hasFailed = true;
      if (!this.stop.signal.aborted) this.error.value = error;
    }
    this.isReading = false;
    this.summaryAt = performance.now();
    if (this.isStale) this.refresh();
  }

  /** Show a summary, with what the stream has brought since. @param {Summary} summary */
  show(summary) {
    const before = this.now.peek();
    if (before && summary.lastEventId < before.lastEventId) {
      if (summary.complete && before.complete) this.now.value = withLater(summary, before);
      return;
    }
    const isOver = summary.status !== "Running" && this.execution.peek()?.status === "Running";
    batch(() => {
      this.now.value = summary;
      this.lastEventId.value = Math.max(this.lastEventId.peek(), summary.lastEventId);
      this.error.value = null;
    });
    if (!summary.complete) return;
    if (!before?.complete && this.execution.peek()?.status === "Running") this.follow();
    if (isOver) void this.look();
  }

  /** Follow the events from the summary on, with what they change in it. */
  follow() {
    const summary = this.now.peek();
    if (!summary || this.isStreaming || this.stop.signal.aborted) return;
    this.isStreaming = true;
    const onEnd = (/** @type {any} */ error) => {
      this.isStreaming = false;
      if (error) this.refresh(); // and the next look follows again
      else void this.look();
    };
    const query = { paths: true, steps: true, after: summary.lastEventId };
    const take = this.take.bind(this);
    void stream(`${this.apiPath}/events/stream`, query, take, { signal: this.stop.signal, onEnd });
  }

  /** @param {any[]} events @param {import("../../store/stream.js").NamedMessage[]} changes of the summary */
  take(events, changes) {
    batch(() => {
      for (const { data } of changes) this.change(data);
      if (!events.length) return;
      this.lastEventId.value = Math.max(this.lastEventId.peek(), events[events.length - 1].eventId);
      for (const listener of this.listeners) listener(events);
    });
    if (events.some((event) => WAITS.has(event.type))) this.lookSoon();
  }

  /** @param {import("./summaries.js").Changes} changes */
  change(changes) {
    const summary = this.now.peek();
    const changed = summary && withChanges(summary, changes);
    if (changed) this.show(changed);
    else this.refresh();
  }

  /** The execution itself is read again after events that change what its steps wait for, but not often. */
  lookSoon() {
    const wait = Math.max(0, this.lookAt + LOOK_SOON_MS - performance.now());
    this.soonTimer ||= setTimeout(() => {
      this.soonTimer = 0;
      if (!document.hidden) void this.look();
    }, wait);
  }
}

/** Of a step that is entered the summary says enough. */
const WAITS = new Set(["TaskSubmitted", "StepWaitingForRedrive", "TaskFailed", "ExecutionRedriven"]);

/** @param {string} flow @param {string} name @returns {Run} */
export function useRun(flow, name) {
  const run = useMemo(() => new Run(flow, name), [flow, name]);
  useEffect(() => {
    run.open();
    return () => run.close();
  }, [run]);
  return run;
}
