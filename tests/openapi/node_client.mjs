// Generates a client with @hey-api/openapi-ts and makes calls with it; see tests/openapi/test_generated_clients.py.
// Arguments: the document, an empty folder, the server's URL. Calls come as lines on stdin, replies go to stdout.
import readline from "node:readline";
import { pathToFileURL } from "node:url";
import { createClient } from "@hey-api/openapi-ts";

const [document, folder, baseUrl] = process.argv.slice(2);
await createClient({
  input: document,
  output: { path: folder, module: { extension: ".ts" } },
  plugins: ["@hey-api/client-fetch", "@hey-api/typescript", "@hey-api/sdk"],
  logs: { level: "silent" },
});
const load = (name) => import(pathToFileURL(`${folder}/${name}`).href);
const { client } = await load("client.gen.ts");
const sdk = await load("sdk.gen.ts");
client.setConfig({ baseUrl, auth: "any" });

const camel = (id) => id.replace(/_(\w)/g, (_, letter) => letter.toUpperCase());

for await (const line of readline.createInterface({ input: process.stdin })) {
  const { id, path, query, body } = JSON.parse(line);
  const reply = await sdk[camel(id)]({ path, query, ...(body && { body }) });
  // Streams of events have no response; the execution has ended, so this one ends, too.
  const events = reply.stream ? (await Array.fromAsync(reply.stream)).length : 0;
  const isRead = events > 0 || (reply.data ?? reply.error) !== undefined;
  const status = reply.response?.status ?? (events > 0 ? 200 : 0);
  process.stdout.write(`${JSON.stringify({ id, status, isRead })}\n`);
}
