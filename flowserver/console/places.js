/** Places of the rail: title, path, icon, and the key after `g`. @type {[string, string, string, string][]} */
export const PLACES = [
  ["Overview", "/", "overview", "o"],
  ["Executions", "/executions", "executions", "e"],
  ["Flows", "/flows", "flows", "f"],
  ["Waiting", "/waiting", "waiting", "w"],
  ["Schedules", "/schedules", "schedules", "s"],
  ["Functions", "/functions", "functions", "n"],
  ["Queues", "/queues", "queues", "q"],
  ["Server", "/server", "server", "v"],
];
