/** What the events of one step say: how often it was entered, and of each entry its input, attempts, output and end. */

/**
 * @typedef {{number: number, eventId: number, scheduledAt: string, startedAt: string | null, endedAt: string | null,
 *   status: "Running" | "Submitted" | "Succeeded" | "Failed" | "TimedOut" | "Cancelled", error: string | null, cause: string | null,
 *   requestId: string | null, input: any, output: any, resource: string | null, pattern: string | null, child: string | null}} Attempt
 * @typedef {{eventId: number, isWhole: boolean, enteredAt: string | null, endedAt: string | null, status: string,
 *   input: any, own: any, local: any, after: any, output: any, error: string | null, cause: string | null,
 *   attempts: Attempt[], lastEventId: number}} Entry
 *   `input` and `local`: of the list of steps; `own`: the step's own input, after its mappings; `after`: the list's local
 *   when the step was left
 */

/** @param {any[]} events of one step path, in order @returns {Entry[]} */
export function entriesOf(events) {
  /** @type {Entry[]} */
  const entries = [];
  for (const event of events) {
    if (BEGINS.has(event.type) || !entries.length) entries.push(entry(event));
    const now = entries[entries.length - 1];
    now.lastEventId = event.eventId;
    FOLD[event.type]?.(now, event);
  }
  return entries;
}

const BEGINS = new Set(["StepEntered", "BranchEntered", "IterationEntered"]);

/** @param {any} event @returns {Entry} */
function entry(event) {
  const isWhole = BEGINS.has(event.type);
  return {
    eventId: event.eventId,
    isWhole,
    enteredAt: isWhole ? event.time : null,
    endedAt: null,
    status: "Running",
    input: isWhole ? event.detail.input : undefined,
    own: undefined,
    local: isWhole ? event.detail.local : undefined,
    after: undefined,
    output: undefined,
    error: null,
    cause: null,
    attempts: [],
    lastEventId: event.eventId,
  };
}

/** @param {Entry} on @returns {Attempt} the last attempt, or a place for one whose begin was not read */
function lastAttempt(on) {
  return on.attempts[on.attempts.length - 1] ?? attempt(on, { eventId: 0, time: null, detail: {} });
}

/** @param {Entry} on @param {any} event @returns {Attempt} */
function attempt(on, event) {
  const { input, resourceArn: resource = null, pattern = null } = event.detail;
  /** @type {Attempt} */
  const made = {
    number: on.attempts.length + 1,
    eventId: event.eventId,
    scheduledAt: event.time,
    startedAt: null,
    endedAt: null,
    status: "Running",
    error: null,
    cause: null,
    requestId: null,
    input,
    output: undefined,
    resource,
    pattern,
    child: null,
  };
  on.attempts.push(made);
  return made;
}

/** @param {Attempt["status"]} status @returns {(on: Entry, event: any) => void} */
const ended = (status) => (on, event) => {
  const last = lastAttempt(on);
  last.status = status;
  last.endedAt = event.time;
  last.error = event.detail.error ?? null;
  last.cause = event.detail.cause ?? null;
  last.requestId = event.detail.requestId ?? last.requestId;
  if (event.detail.output !== undefined) last.output = event.detail.output;
};

/** @param {string} status @returns {(on: Entry, event: any) => void} */
const stepEnded = (status) => (on, event) => {
  on.status = status;
  on.endedAt = event.time;
  on.error = event.detail.error ?? null;
  on.cause = event.detail.cause ?? null;
  on.output = event.detail.output;
};

/** @type {Record<string, (on: Entry, event: any) => void>} */
const FOLD = {
  StepStarted: (on, event) => void (on.own = event.detail.input),
  TaskScheduled: (on, event) => void attempt(on, event),
  TaskStarted: (on, event) => void (lastAttempt(on).startedAt = event.time),
  TaskSubmitted: (on, event) => {
    const last = lastAttempt(on);
    const output = event.detail.output;
    last.status = "Submitted";
    last.output = output;
    last.requestId = event.detail.requestId ?? null;
    if (typeof output?.FlowName === "string" && typeof output.Name === "string") last.child = `${output.FlowName}/${output.Name}`;
  },
  TaskSucceeded: ended("Succeeded"),
  TaskFailed: ended("Failed"),
  TaskSubmitFailed: ended("Failed"),
  TaskTimedOut: ended("TimedOut"),
  StepSucceeded: stepEnded("Succeeded"),
  StepFailed: stepEnded("Failed"),
  StepWaitingForRedrive: stepEnded("WaitingForRedrive"),
  StepExited: (on, event) => leave(on, event),
  IterationExited: (on, event) => leave(on, event, "Succeeded"),
  BranchExited: (on, event) => leave(on, event, "Succeeded"),
};

/** @param {Entry} on @param {any} event @param {string} [status] of what has no event for its success */
function leave(on, event, status) {
  on.after = event.detail.local;
  on.endedAt ??= event.time;
  if (event.detail.cancelled) on.status = "Cancelled";
  else if (on.status === "Running") on.status = status ?? "Cancelled";
  for (const attempt of on.attempts) {
    if (attempt.endedAt !== null) continue;
    attempt.status = "Cancelled";
    attempt.endedAt = event.time;
  }
}

/** @param {string} path such as `pack[].label` or `pack[17].label` @returns {boolean} whether it stands for many */
export const isMany = (path) => path.includes("[]");
