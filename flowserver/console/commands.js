/** Commands of the command line, as the console offers them. */
import { base } from "./routes.js";

/** A word of a shell command. @param {string} word */
export function quoted(word) {
  return /^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", `'\\''`)}'`;
}

/** The command, sent to this server wherever the terminal's context points. @param {string} command */
export function onThisServer(command) {
  const server = (location.origin + base).replace(/\/$/, "");
  return `${command} --server ${quoted(server)}`;
}
