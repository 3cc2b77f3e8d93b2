/** The fetch layer: every request of the console is made here. */
import { signal } from "../vendor/preact.js";
import { parseJson, stringifyJson } from "../exact-json.js";
import { ofTab } from "../memory.js";
import { base } from "../routes.js";

/**
 * @typedef {string | number | boolean | null | undefined} Scalar
 * @typedef {Record<string, Scalar | Scalar[]>} ApiQuery  null, undefined and "" leave it out; arrays repeat it
 * @typedef {{method?: string, query?: ApiQuery, body?: unknown, text?: string, type?: string,
 *   headers?: Record<string, string>, signal?: AbortSignal}} ApiOptions
 *   `body` is sent as JSON; `text` as it is, with the media type `type`
 */

const TOKEN_KEY = "flowserver.token";
const NO_ANSWER = "The server cannot be reached. A change may have been made all the same: look before you repeat it.";

/** The bearer token; "" without one. Kept for this tab only. */
export const token = signal(ofTab.get(TOKEN_KEY) ?? "");

/** Why the server wants a (new) sign-in; null while it does not. */
export const signInWanted = signal(/** @type {string | null} */ (null));

/** Whether the last request reached the server. */
export const reachable = signal(true);

/** @param {string} value */
export function setToken(value) {
  token.value = value;
  ofTab.set(TOKEN_KEY, value || null);
}

/** A request that failed. `status` 0: the server could not be reached. `problem`: the answer's body, if it was a problem. */
export class ApiError extends Error {
  /** @param {number} status @param {string} code @param {string} message @param {any} [problem] */
  constructor(status, code, message, problem) {
    super(message);
    this.name = "ApiError";
    this.status = status;
    this.code = code;
    this.problem = problem ?? null;
  }
}

/** Whether an error may be gone at the next try. @param {any} error */
export function isPassing(error) {
  return !(error instanceof ApiError) || error.status === 0 || error.status === 401 || error.status === 429 || error.status >= 500;
}

/** @param {string} path @param {ApiQuery} [query] @returns {string} */
export function urlOf(path, query) {
  const search = new URLSearchParams();
  for (const [name, given] of Object.entries(query ?? {})) {
    for (const value of Array.isArray(given) ? given : [given]) {
      if (value !== null && value !== undefined && value !== "") search.append(name, String(value));
    }
  }
  const text = search.toString();
  return base + path.replace(/^\//, "") + (text && "?" + text);
}

/**
 * Ask the server; throws ApiError. A path is relative to the console: `v1/flows`.
 * @param {string} path @param {ApiOptions} [options] @returns {Promise<any>} the JSON of the answer; null without one
 */
export async function api(path, options) {
  return (await apiResponse(path, options)).data;
}

/**
 * As `api`, with the answer's status and headers, such as `ETag`.
 * @param {string} path @param {ApiOptions} [options] @returns {Promise<{data: any, response: Response}>}
 */
export async function apiResponse(path, options = {}) {
  const response = await send(path, options);
  const text = response.status === 204 ? "" : await reached(response.text(), options);
  try {
    return { data: text ? parseJson(text) : null, response };
  } catch {
    throw new ApiError(response.status, "NoJson", "The server's answer is not JSON. Is there a proxy between?");
  }
}

/** @param {string} path @param {ApiOptions} options @returns {Promise<Response>} an answer that is no error */
export async function send(path, { method = "GET", query, body, text, type, headers = {}, signal } = {}) {
  const used = headers.Authorization ? null : token.peek();
  /** @type {Record<string, string>} */
  const sent = { Accept: "application/json", ...headers };
  if (used) sent.Authorization = `Bearer ${used}`;
  if (body !== undefined) sent["Content-Type"] = "application/json";
  else if (text !== undefined) sent["Content-Type"] = type ?? "text/plain";
  const asked = fetch(urlOf(path, query), {
    method,
    headers: sent,
    body: body === undefined ? text : stringifyJson(body),
    signal,
    credentials: "same-origin",
    cache: "no-store",
  });
  const response = await reached(asked, { method, signal });
  reachable.value = true;
  if (response.ok) return response;
  throw await refusal(response, used);
}

/**
 * What the server sends; throws ApiError if that is cut off or never begins.
 * @template T
 * @param {Promise<T>} sent @param {ApiOptions} options those of the request @returns {Promise<T>}
 */
async function reached(sent, { method = "GET", signal }) {
  try {
    return await sent;
  } catch (error) {
    if (signal?.aborted) throw error;
    reachable.value = false;
    const message = method === "GET" ? "The server cannot be reached." : NO_ANSWER;
    throw new ApiError(0, "Unreachable", message);
  }
}

/** @param {Response} response @param {string | null} used the token of the request; null if it had another authorisation */
async function refusal(response, used) {
  let problem = null;
  try {
    problem = await response.json();
  } catch {
    // A proxy's page, or nothing: the status says enough.
  }
  const code = problem?.code ?? `Http${response.status}`;
  const error = new ApiError(response.status, code, problem?.detail ?? `The server answered ${response.status}.`, problem);
  // A refusal of an older token says nothing about the present one.
  if (response.status === 401 && used === token.peek()) signInWanted.value = used ? error.message : "";
  return error;
}
