/** Events as rows of a list: what one line says of an event. Their documents are left out, so that many rows stay small. */
import { causeText, preview } from "../../parts/json-values.js";

/**
 * @typedef {{id: number, cause: number, type: string, name: string, path: string, isPlaced: boolean, at: number, text: string, tone: Tone}} EventRow
 * @typedef {"ok" | "run" | "fail" | "wait" | "stop" | "none"} Tone
 */

const TEXT_CHARACTERS = 160;

/** @type {Record<string, Tone>} */
const TONES = {
  ExecutionSucceeded: "ok",
  ExecutionFailed: "fail",
  ExecutionStopped: "stop",
  ExecutionTimedOut: "stop",
  ExecutionRedriven: "run",
  StepSucceeded: "ok",
  StepFailed: "fail",
  StepWaitingForRedrive: "wait",
  TaskSubmitted: "wait",
  TaskSubmitFailed: "fail",
  TaskSucceeded: "ok",
  TaskFailed: "fail",
  TaskTimedOut: "fail",
};

/** @param {any} event as REST gives it @returns {EventRow} */
export function rowOf(event) {
  return {
    id: event.eventId,
    cause: event.scheduleEventId,
    type: event.type,
    name: event.stepName,
    path: event.stepPath ?? event.stepName,
    isPlaced: event.stepPath !== null,
    at: Date.parse(event.time),
    text: textOf(event.detail),
    tone: TONES[event.type] ?? "none",
  };
}

/** @param {any} detail @returns {string} */
function textOf(detail) {
  if (detail.error) return `${detail.error}: ${causeText(detail.cause)}`.slice(0, TEXT_CHARACTERS);
  if (detail.resourceArn) return `${detail.pattern} ${detail.resourceArn}`;
  for (const name of ["output", "input", "local"]) {
    if (detail[name] !== undefined && detail[name] !== null) return `${name} ${preview(detail[name], TEXT_CHARACTERS - 20)}`;
  }
  return detail.index === undefined ? "" : `${detail.index + 1} of ${detail.total ?? "?"}`;
}

/** Groups of types that the list can be filtered by. @type {Record<string, {label: string, types: string[]}>} */
export const TYPE_GROUPS = {
  failures: {
    label: "Failures",
    types: ["StepFailed", "StepWaitingForRedrive", "TaskFailed", "TaskSubmitFailed", "TaskTimedOut", "ExecutionFailed", "ExecutionStopped", "ExecutionTimedOut"],
  },
  steps: { label: "Steps", types: ["StepEntered", "StepSucceeded", "StepFailed", "StepWaitingForRedrive", "StepExited"] },
  tasks: {
    label: "Tasks",
    types: ["TaskScheduled", "TaskStarted", "TaskSubmitted", "TaskSubmitFailed", "TaskSucceeded", "TaskFailed", "TaskTimedOut"],
  },
  lists: { label: "Branches and iterations", types: ["BranchEntered", "BranchExited", "IterationEntered", "IterationExited"] },
  execution: {
    label: "Execution",
    types: ["ExecutionStarted", "ExecutionSucceeded", "ExecutionFailed", "ExecutionStopped", "ExecutionTimedOut", "ExecutionRedriven"],
  },
};
