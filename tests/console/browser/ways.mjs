// For each question on standard input, {graph, states, paths}: the nodes of the paths, and the edges that were taken.
import { readFileSync } from "node:fs";
import { edgeKey, nodeOf, takenEdges } from "../../../flowserver/console/parts/graph-walk.js";

const answers = JSON.parse(readFileSync(0, "utf8")).map(({ graph, states, paths }) => {
  const taken = takenEdges(graph, new Map(states.map((state) => [state.path, state])));
  return { nodes: paths.map((path) => nodeOf(graph, path)?.path ?? null), taken: graph.edges.map((edge) => taken.get(edgeKey(edge)) ?? 0), after: Object.fromEntries(taken) };
});
process.stdout.write(JSON.stringify(answers));
