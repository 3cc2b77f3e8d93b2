/** Who the caller is, and what the caller may do. */
import { batch, computed, signal } from "../vendor/preact.js";
import { api, setToken, signInWanted, token } from "./requests.js";

/**
 * @typedef {{key: string | null, open: boolean, role: string, flows: string, may: string[] | null}} Permissions
 * @typedef {{id: string, secret: string, bearerToken: string, role: string, flows: string}} NewKey
 *   `key`: the label of the key; `open`: the server has no keys; `flows`: what the names of the flows begin with that it is
 *   for; `may` null: not known, so everything
 */

/** What the server allows. */
export const permissions = signal(/** @type {Permissions} */ (unknown()));

/** @returns {Permissions} */
function unknown() {
  return { key: null, open: false, role: "", flows: "", may: null };
}

/** Grows with each sign-in and sign-out; what was read before is read again. */
const number = signal(0);

/** `wanted`: why the server wants a sign-in, "" without a reason, null if it wants none. */
export const session = computed(() => ({ number: number.value, wanted: signInWanted.value, hasToken: token.value !== "" }));

/**
 * Whether pages may begin: with a key they wait for what it may do, so that they ask for nothing else. What has begun
 * stays: a page may show a key that nothing shows again.
 */
export const isReady = signal(token.peek() === "");

/**
 * Whether the caller may do this. Every button of a change asks.
 * @param {string} name such as "executions.stop" @returns {boolean}
 */
export function may(name) {
  const allowed = permissions.value.may;
  return allowed === null || allowed.includes(name);
}

/** Read what is allowed; throws ApiError. An answer that comes after another sign-in says nothing of it. */
export async function loadPermissions() {
  const used = token.peek();
  try {
    const found = await api("v1/permissions");
    if (used === token.peek()) permissions.value = { ...unknown(), ...found };
  } finally {
    isReady.value = true;
  }
}

/**
 * Sign in with a bearer token; throws ApiError if the server refuses it.
 * @param {string} given
 */
export async function signIn(given) {
  setToken(given.trim());
  try {
    await loadPermissions();
  } catch (error) {
    setToken("");
    throw error;
  }
  begin();
}

/**
 * Exchange the code of a sign-in link for a new key, and sign in with it; throws ApiError.
 * @param {string} code @returns {Promise<NewKey>}
 */
export async function takeKey(code) {
  const key = await api("v1/sign-ins", { method: "POST", headers: { Authorization: `Bearer ${code}` } });
  await signIn(key.bearerToken).catch(() => setToken(key.bearerToken)); // the key is shown in any case: nothing else has it
  return key;
}

/** Read all again. */
function begin() {
  batch(() => {
    signInWanted.value = null;
    number.value += 1;
  });
}

/** Forget the token and all that was read with it, and want another one if the server has keys. */
export async function signOut() {
  batch(() => {
    setToken("");
    permissions.value = unknown();
    signInWanted.value = "";
    number.value += 1;
  });
  try {
    await loadPermissions();
  } catch {
    return; // Refused, as it should be, or not reached.
  }
  if (token.peek() === "") begin();
}
