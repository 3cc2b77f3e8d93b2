// The flows of tests/benchmarks/definitions.py as Restate handlers: each step a durable ctx.run of its own.
// node flows.mjs PORT FUNCTIONS_URL
import * as restate from "@restatedev/restate-sdk";
import http from "node:http";

const [port, functions] = process.argv.slice(2);
const { hostname, port: functionsPort } = new URL(functions);
const agent = new http.Agent({ keepAlive: true, maxSockets: 128, noDelay: true });

function post(path, value, headers = {}) {
  const body = JSON.stringify(value);
  const about = { "content-type": "application/json", "content-length": Buffer.byteLength(body), ...headers };
  const options = { agent, hostname, port: functionsPort, path, method: "POST", headers: about };
  return new Promise((resolve, reject) => {
    const request = http.request(options, (response) => {
      const parts = [];
      response.on("data", (part) => parts.push(part));
      response.on("error", reject);
      response.on("end", () => resolve(JSON.parse(Buffer.concat(parts).toString())));
    });
    request.on("error", reject);
    request.end(body);
  });
}

const bench = restate.service({
  name: "bench",
  handlers: {
    calls: async (ctx, input) => {
      let last = input;
      for (let n = 0; n < 5; n++) last = await ctx.run(`call${n}`, () => post("/echo", input));
      return last;
    },
    passes: async (ctx, input) => {
      for (let n = 0; n < 10; n++) await ctx.run(`pass${n}`, () => 1);
      return input;
    },
    each: async (ctx, input) => {
      await restate.RestatePromise.all(
        input.items.map((item) => ctx.run("call", async () => (await post("/echo", { item })).ok)),
      );
      return { done: true };
    },
    callback: async (ctx, input) => {
      const { id, promise } = ctx.awakeable();
      await ctx.run("suspended", async () => {
        await post("/token", { token: id }, { "x-flowserver-execution": input.name });
      });
      return await promise;
    },
  },
});
restate.serve({ services: [bench], port: Number(port) });
