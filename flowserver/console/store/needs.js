/** What the caller may read. What it may not read is not asked for, and not offered: no page needs to know. */
import { mayShow } from "../routes.js";
import { may, permissions } from "./session.js";

/** The permission that a GET needs, by its path; the first that fits. @type {[RegExp, string][]} */
const READS = [
  [/^v1\/flows\/[^/]+\/executions\/./, "executions.read"],
  [/^v1\/(?:flows\/[^/]+\/)?executions$/, "executions.list"],
  [/^v1\/(?:flows|schedules|definitions\/(?:graph|validate))(?:\/|$)/, "flows.read"],
  [/^v1\/functions\/[^/]+\/[^/]+\/invocations\/./, "functions.read"],
  [/^v1\/(?:functions|invocations)(?:\/|$)/, "functions.read"],
  [/^v1\/(?:queues|topics)(?:\/|$)/, "queues.read"],
  [/^v1\/tasks$/, "tasks.read"],
  [/^v1\/secrets(?:\/|$)/, "secrets.read"],
  [/^v1\/(?:overview|nodes)$/, "server.read"],
  [/^v1\/keys$/, "keys.read"],
  [/^v1\/audit$/, "audit.read"],
];

/** Reads that concern all flows together: not for keys that are for some flows only. */
const OF_ALL_FLOWS = ["v1/overview"];

/** @param {string} path of the API, without a query @returns {string | null} null: every caller may read it */
export function permissionOf(path) {
  return READS.find(([pattern]) => pattern.test(path))?.[1] ?? null;
}

/** @param {string} path of the API, perhaps with a query @returns {boolean} */
export function mayRead(path) {
  const [bare] = path.split("?", 1);
  if (permissions.value.flows && OF_ALL_FLOWS.includes(bare)) return false;
  const needed = permissionOf(bare);
  return needed === null || may(needed);
}

mayShow.value = (entry) => !entry.reads || mayRead(entry.reads);
