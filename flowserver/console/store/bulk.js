/** The same change to many things, a few at a time. */

/**
 * @template Item
 * @typedef {{done: number, total: number, failed: {item: Item, error: any}[]}} Progress
 */

const AT_ONCE = 4;

/**
 * Run `work` for each item, four at a time. `onProgress` is called after each. After an abort nothing more is begun.
 * @template Item
 * @param {Item[]} items @param {(item: Item) => Promise<unknown>} work
 * @param {{signal?: AbortSignal, onProgress?: (progress: Progress<Item>) => void}} [options]
 * @returns {Promise<Progress<Item>>}
 */
export async function changeMany(items, work, { signal, onProgress } = {}) {
  /** @type {Progress<Item>} */
  const progress = { done: 0, total: items.length, failed: [] };
  const rest = items.values();
  const worker = async () => {
    for (const item of rest) {
      if (signal?.aborted) return;
      try {
        await work(item);
      } catch (error) {
        progress.failed.push({ item, error });
      }
      progress.done += 1;
      onProgress?.({ ...progress, failed: [...progress.failed] });
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE }, worker));
  return progress;
}
