/** The filter of the executions' list: in the URL, as the API's query, as a command, in words. */
import { onThisServer, quoted } from "../commands.js";

/**
 * @typedef {import("../routes.js").Query} Query
 * @typedef {{value: string, label: string, status: string, api: import("../store/requests.js").ApiQuery, option: string}} Choice
 */

/** What `status` in the URL may be. `status`: as in parts/basics.js. @type {Choice[]} */
export const STATUSES = [
  { value: "", label: "All", status: "", api: {}, option: "" },
  { value: "running", label: "Running", status: "Running", api: { status: "Running" }, option: "--status running" },
  { value: "succeeded", label: "Succeeded", status: "Succeeded", api: { status: "Succeeded" }, option: "--status succeeded" },
  { value: "failed", label: "Failed", status: "Failed", api: { status: "Failed" }, option: "--status failed" },
  { value: "stopped", label: "Stopped", status: "Stopped", api: { status: "Stopped" }, option: "--status stopped" },
  { value: "timedout", label: "Timed out", status: "TimedOut", api: { status: "TimedOut" }, option: "--status timedout" },
  { value: "parked", label: "Parked", status: "Parked", api: { parked: true }, option: "--parked" },
  { value: "redrive", label: "Waiting for a redrive", status: "WaitingForRedrive", api: { waitingForRedrive: true }, option: "--waiting-redrive" },
];

/** What `since` may be besides an instant. */
export const AGES = [
  { value: "15m", label: "last 15 minutes" },
  { value: "1h", label: "last hour" },
  { value: "6h", label: "last 6 hours" },
  { value: "today", label: "today" },
  { value: "1d", label: "last 24 hours" },
  { value: "7d", label: "last 7 days" },
  { value: "30d", label: "last 30 days" },
];

/** Fields of the filter in the URL. `ended` is as `since`, but of the end: for failed, stopped, timedout. */
export const FIELDS = ["status", "flow", "prefix", "qualifier", "since", "until", "ended"];

const SECONDS = /** @type {Record<string, number>} */ ({ s: 1, m: 60, h: 3_600, d: 86_400, w: 604_800 });
const ENDED_BADLY = ["failed", "stopped", "timedout"];

/**
 * The instant that an age such as `1d`, `today` or an instant means; null if it means none.
 * @param {string | undefined} text @param {number} now in ms @returns {string | null}
 */
export function instantOf(text, now) {
  if (!text) return null;
  const age = /^(\d{1,6})([smhdw])$/.exec(text);
  if (age) return new Date(now - Number(age[1]) * SECONDS[age[2]] * 1_000).toISOString();
  if (text === "today") return new Date(new Date(now).setHours(0, 0, 0, 0)).toISOString();
  const instant = new Date(text);
  return Number.isNaN(instant.getTime()) ? null : instant.toISOString();
}

/** @param {Query} query @returns {Choice} */
export function statusOf(query) {
  return STATUSES.find((choice) => choice.value === (query.status ?? "").toLowerCase()) ?? STATUSES[0];
}

/**
 * What to ask the API.
 * @param {Query} query @param {number} now in ms @returns {import("../store/requests.js").ApiQuery}
 */
export function apiQueryOf(query, now) {
  const status = statusOf(query);
  return {
    ...status.api,
    flow: query.flow,
    namePrefix: query.prefix,
    qualifier: query.qualifier,
    startedFrom: instantOf(query.since, now),
    startedTo: instantOf(query.until, now),
    endedFrom: ENDED_BADLY.includes(status.value) ? instantOf(query.ended, now) : null,
  };
}

/** The filter alone, without what else is in the URL. @param {Query} query @returns {Query} */
export function filterOf(query) {
  return Object.fromEntries(FIELDS.flatMap((field) => (query[field] ? [[field, query[field]]] : [])));
}

/** The command that lists the same. @param {Query} query @returns {string} */
export function commandOf(query) {
  const status = statusOf(query);
  const options = [
    status.option,
    ...[["flow", "--flow"], ["prefix", "--prefix"], ["qualifier", "--qualifier"], ["since", "--since"], ["until", "--until"]].map(
      ([field, option]) => (query[field] ? `${option} ${quoted(query[field])}` : ""),
    ),
    query.ended && ENDED_BADLY.includes(status.value) ? `--ended-since ${quoted(query.ended)}` : "",
  ];
  return onThisServer(["flowserver executions list", ...options.filter(Boolean)].join(" "));
}

/** The filter in words, for the name of a view. @param {Query} query @returns {string} */
export function describe(query) {
  const status = statusOf(query);
  const age = AGES.find((each) => each.value === (query.ended ?? query.since));
  const parts = [
    query.flow,
    status.value && status.label.toLowerCase(),
    query.prefix && `${query.prefix}…`,
    query.qualifier && `version ${query.qualifier}`,
    age?.label ?? query.ended ?? query.since,
  ];
  return parts.filter(Boolean).join(" · ") || "All executions";
}
