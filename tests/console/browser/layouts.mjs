// Lays out the graphs that it reads from standard input, a JSON list, and writes the layouts.
import { readFileSync } from "node:fs";
import { layoutOf } from "../../../flowserver/console/parts/graph-layout.js";

process.stdout.write(JSON.stringify(JSON.parse(readFileSync(0, "utf8")).map((graph) => layoutOf(graph))));
