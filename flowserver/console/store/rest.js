/** Pauses after errors. */
import { isPassing } from "./requests.js";
import { session } from "./session.js";

const AGAIN_MS = 5_000;

/**
 * While it is on, what has failed is not tried, however often the page is painted. After an error that may pass it ends
 * after a while, if the page is looked at then, and what has failed is tried again; after another error it stays on.
 */
export class Rest {
  isOn = false;
  timer = 0;

  /** @param {any} error @param {() => unknown} act what has failed */
  begin(error, act) {
    this.isOn = true;
    if (isPassing(error)) this.wait(act);
  }

  /** @param {() => unknown} act */
  wait(act) {
    this.timer = setTimeout(() => {
      if (document.hidden || session.peek().wanted !== null) return this.wait(act);
      this.isOn = false;
      act();
    }, AGAIN_MS);
  }

  end() {
    clearTimeout(this.timer);
  }
}
