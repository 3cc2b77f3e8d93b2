/** The status of an execution as lists show it. */
import { html } from "../vendor/preact.js";
import { Status } from "./basics.js";

/** @param {{row: any}} props `row`: as ExecutionSummary of the API */
export function ExecutionStatus({ row }) {
  if (row.parkedError && row.status === "Running") return html`<${Status} status="Parked" />`;
  if (row.waitingSteps > 0 && row.status === "Running") return html`<${Status} status="WaitingForRedrive" label=${`${row.waitingSteps} for redrive`} />`;
  return html`<${Status} status=${row.status} />`;
}
