/** The commands of the command line that show or repeat what the page shows. */
import { html } from "../../vendor/preact.js";
import { onThisServer, quoted } from "../../commands.js";
import { stringifyJson } from "../../exact-json.js";
import { Copy, Dialog } from "../../parts/basics.js";

const COMMAND_CHARACTERS = 100_000;
const SHOWN_CHARACTERS = 600;

/** @param {any} execution @returns {[string, string][]} label and command */
export function commandsOf(execution) {
  const name = quoted(`${execution.flowName}/${execution.name}`);
  const input = stringifyJson(execution.input);
  const given = input === "{}" ? "" : input.length > COMMAND_CHARACTERS ? " --input @input.json" : ` --input ${quoted(input)}`;
  const qualifier = execution.alias ?? execution.version;
  const version = qualifier === null ? "" : ` --qualifier ${quoted(String(qualifier))}`;
  const isOver = execution.status !== "Running";
  /** @type {[string, string][]} */
  const commands = [
    ["Start it again with this input", `flowserver start ${quoted(execution.flowName)}${version}${given}`],
    ["Watch it", `flowserver watch ${name}`],
    ["Describe it", `flowserver executions describe ${name}`],
    ["Its events", `flowserver executions history ${name}${execution.failedStep ? ` --step ${quoted(execution.failedStep)}` : ""}`],
  ];
  if (isOver ? execution.status !== "Succeeded" : execution.waitingSteps > 0) commands.push(["Redrive it", `flowserver executions redrive ${name}`]);
  if (!isOver && execution.parkedError) commands.push(["Restart it", `flowserver executions restart ${name}`]);
  if (!isOver) commands.push(["Stop it", `flowserver executions stop ${name}`]);
  return commands.map(([label, command]) => [label, onThisServer(command)]);
}

/** @param {{execution: any, onClose: () => void}} props */
export function CommandDialog({ execution, onClose }) {
  return html`<${Dialog} title="Copy as command" onClose=${onClose}>
    <dl class="commands">${commandsOf(execution).map(([label, command]) => html`<div key=${label}>
      <dt>${label} <${Copy} text=${command} label="Copy" /></dt>
      <dd><code>${command.length > SHOWN_CHARACTERS ? `${command.slice(0, SHOWN_CHARACTERS)}…` : command}</code></dd>
    </div>`)}</dl>
  <//>`;
}
