/** An execution's input, output and definition: read once, and again only when they may have changed. */

/** Whether the documents of an execution as it was read are still those of its state as it is now. @param {any} read @param {any} state */
export const hasSameDocuments = (read, state) =>
  read.id === state.id && read.status === state.status && read.redriveCount === state.redriveCount;

/** The state with documents that were read before. @param {any} state @param {any} read */
export const withDocuments = (state, { input, output, definition }) => ({ ...state, input, output, definition });
