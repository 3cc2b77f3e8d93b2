// @alicloud/fc-open20210406, driven line by line; see tests/sdk/client.py. Bytes travel in base64.
'use strict';

const readline = require('readline');
const { default: FC, ...models } = require('../node/node_modules/@alicloud/fc-open20210406');
const { Config } = require('../node/node_modules/@alicloud/openapi-client');
const { default: Signing } = require('../node/node_modules/@alicloud/openapi-util');
const { RuntimeOptions } = require('../node/node_modules/@alicloud/tea-util');

const CALLS = {
  Invoke: async (client, { serviceName, functionName, qualifier, payload, headers }) => {
    const wanted = new models.InvokeFunctionHeaders({
      xFcInvocationType: headers['X-Fc-Invocation-Type'],
      xFcStatefulAsyncInvocationId: headers['X-Fc-Stateful-Async-Invocation-Id'],
    });
    const body = Buffer.from(payload, 'base64');
    const request = new models.InvokeFunctionRequest({ body, qualifier: qualifier ?? undefined });
    const reply = await client.invokeFunctionWithOptions(serviceName, functionName, request, wanted, new RuntimeOptions({}));
    return { data: reply.body.toString('base64'), headers: reply.headers };
  },
  PutAsyncConfig: async (client, { serviceName, functionName, qualifier, asyncConfig }) => {
    const request = new models.PutFunctionAsyncInvokeConfigRequest({ qualifier, ...asyncConfig });
    return (await client.putFunctionAsyncInvokeConfig(serviceName, functionName, request)).body.toMap();
  },
  GetAsyncConfig: async (client, { serviceName, functionName, ...given }) => {
    const request = new models.GetFunctionAsyncInvokeConfigRequest(given);
    return (await client.getFunctionAsyncInvokeConfig(serviceName, functionName, request)).body.toMap();
  },
  ListAsyncConfigs: async (client, { serviceName, functionName, ...given }) => {
    const request = new models.ListFunctionAsyncInvokeConfigsRequest(given);
    return (await client.listFunctionAsyncInvokeConfigs(serviceName, functionName, request)).body.toMap();
  },
  DeleteAsyncConfig: async (client, { serviceName, functionName, ...given }) => {
    const request = new models.DeleteFunctionAsyncInvokeConfigRequest(given);
    await client.deleteFunctionAsyncInvokeConfig(serviceName, functionName, request);
    return {};
  },
  GetTask: async (client, { serviceName, functionName, task, ...given }) => {
    const request = new models.GetStatefulAsyncInvocationRequest(given);
    return (await client.getStatefulAsyncInvocation(serviceName, functionName, task, request)).body.toMap();
  },
  ListTasks: async (client, { serviceName, functionName, ...given }) => {
    const request = new models.ListStatefulAsyncInvocationsRequest(given);
    return (await client.listStatefulAsyncInvocations(serviceName, functionName, request)).body.toMap();
  },
  StopTask: async (client, { serviceName, functionName, task, ...given }) => {
    const request = new models.StopStatefulAsyncInvocationRequest(given);
    await client.stopStatefulAsyncInvocation(serviceName, functionName, task, request);
    return {};
  },
  ListTaskFunctions: async (client, given) => {
    const request = new models.ListStatefulAsyncInvocationFunctionsRequest(given);
    return (await client.listStatefulAsyncInvocationFunctions(request)).body.toMap();
  },
};

async function perform(order) {
  const config = new Config({
    accessKeyId: order.access_key_id,
    accessKeySecret: order.secret,
    endpoint: order.address,
    protocol: 'http',
  });
  const signedAt = new Date(Date.now() - 1000 * order.seconds_ago).toISOString().replace(/\.\d+Z$/, 'Z');
  Signing.getTimestamp = () => signedAt;
  try {
    return { result: await CALLS[order.action](new FC(config), order.parameters) };
  } catch (error) {
    if (!error.code || !error.data) throw error;
    const { statusCode: status } = error.data;
    return { error: { code: error.code, status, message: error.message, raised: error.name } };
  }
}

(async () => {
  for await (const line of readline.createInterface({ input: process.stdin })) {
    process.stdout.write(JSON.stringify(await perform(JSON.parse(line))) + '\n');
  }
})();
