/** Durations as people write them in commands and files; the commands show them so, too. */

/** How long something took. Nothing is rounded up. @param {number} ms @returns {string} "310ms", "1.23s", "12.4s", "3m7s", "2h3m7s", "3d4h" */
export function duration(ms) {
  const whole = Math.max(0, Math.floor(ms));
  if (whole >= 1_000 && whole < 10_000) return `${(Math.floor(whole / 10) / 100).toFixed(2)}s`;
  if (whole >= 10_000 && whole < 60_000) return `${(Math.floor(whole / 100) / 10).toFixed(1)}s`;
  return exactDuration(whole < 1_000 ? whole : whole - (whole % (whole < 86_400_000 ? 1_000 : 3_600_000)));
}

/** @param {number} ms @returns {string} "310ms", "3s", "1d8s", exact to the millisecond */
export function exactDuration(ms) {
  const whole = Math.max(0, Math.round(ms));
  /** @type {[number, string][]} */
  const parts = [
    [Math.floor(whole / 86_400_000), "d"],
    [Math.floor(whole / 3_600_000) % 24, "h"],
    [Math.floor(whole / 60_000) % 60, "m"],
    [Math.floor(whole / 1_000) % 60, "s"],
    [whole % 1_000, "ms"],
  ];
  return parts.map(([count, unit]) => (count ? `${count}${unit}` : "")).join("") || "0s";
}
