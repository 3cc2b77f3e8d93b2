/** What pages know of the server: one fetch layer, one cache, one stream, and what the caller may do. */
export { ApiError, api, apiResponse, isPassing } from "./store/requests.js";
export { isReady, may, permissions, session, signIn, signOut, takeKey } from "./store/session.js";
export { mayRead } from "./store/needs.js";
export { useQuery } from "./store/queries.js";
export { usePages } from "./store/pages.js";
export { changeMany } from "./store/bulk.js";
export { Rest } from "./store/rest.js";
export { stream } from "./store/stream.js";
export { graphOf, useGraph } from "./store/graphs.js";
