/** Icons: outlines of 20 by 20, drawn in the colour of the text. */
import { html } from "../vendor/preact.js";

/** @type {Record<string, string>} */
const PATHS = {
  overview: "M3 11h5V3H3zM12 17h5v-6h-5zM3 17h5v-3H3zM12 8h5V3h-5z",
  executions: "M4 5h12M4 10h12M4 15h7M15 13l3 2-3 2z",
  flows: "M10 3.5v4M5 16v-2a2 2 0 0 1 2-2h6a2 2 0 0 1 2 2v2M10 7.5V12M8.5 3.5h3M3.5 16.5h3M13.5 16.5h3",
  waiting: "M10 3a7 7 0 1 0 0 14 7 7 0 0 0 0-14zM10 6v4l2.5 2",
  schedules: "M4 5h12v12H4zM4 8.5h12M7 3v3M13 3v3M7.5 12h1M11.5 12h1",
  functions: "M13 4c-3-1-4 0-4 3v6c0 3-1 4-4 3M6.5 9.5h6",
  queues: "M3 6h14v3H3zM3 12h14v3H3zM6 7.5h.01M6 13.5h.01",
  server: "M4 4h12v5H4zM4 11h12v5H4zM7 6.5h.01M7 13.5h.01M10 6.5h3M10 13.5h3",
  search: "M9 4a5 5 0 1 0 0 10A5 5 0 0 0 9 4zM12.7 12.7 16.5 16.5",
  key: "M7 10a3 3 0 1 0 0 6 3 3 0 0 0 0-6zM9.2 10.8 16 4M13 7l2 2",
  system: "M3 4h14v9H3zM7 16.5h6M10 13v3.5",
  light: "M10 7a3 3 0 1 0 0 6 3 3 0 0 0 0-6zM10 2.5v1.5M10 16v1.5M2.5 10H4M16 10h1.5M4.7 4.7l1 1M14.3 14.3l1 1M4.7 15.3l1-1M14.3 5.7l1-1",
  dark: "M16.5 12A7 7 0 0 1 8 3.5a7 7 0 1 0 8.5 8.5z",
  copy: "M7 7h9v9H7zM4 13V4h9",
  done: "M4 10.5l4 4 8-9",
  close: "M5 5l10 10M15 5 5 15",
  more: "M5 10h.01M10 10h.01M15 10h.01",
  help: "M10 3a7 7 0 1 0 0 14 7 7 0 0 0 0-14zM8 8a2 2 0 1 1 2.8 1.9c-.6.3-.8.6-.8 1.3M10 13.7h.01",
  save: "M5 4h10v13l-5-4-5 4z",
  plus: "M10 4v12M4 10h12",
  play: "M6 4l10 6-10 6z",
  filter: "M3 5h14M6 10h8M8.5 15h3",
  back: "M12 4l-6 6 6 6",
  swap: "M4 7h11l-3-3M16 13H5l3 3",
  warning: "M10 3.5 17.5 16h-15zM10 8v4M10 14h.01",
};

/** @param {{name: string, size?: number}} props */
export function Icon({ name, size = 20 }) {
  return html`<svg class="icon" width=${size} height=${size} viewBox="0 0 20 20" aria-hidden="true" focusable="false">
    <path d=${PATHS[name] ?? PATHS.more} />
  </svg>`;
}
