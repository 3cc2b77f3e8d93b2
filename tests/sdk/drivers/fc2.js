// @alicloud/fc2, driven line by line; see tests/sdk/client.py. Bytes travel in base64.
'use strict';

const readline = require('readline');
const FC = require('../node/node_modules/@alicloud/fc2');

const CALLS = {
  Invoke: async (client, { serviceName, functionName, qualifier, payload, headers }) => {
    const event = Buffer.from(payload, 'base64');
    const reply = await client.invokeFunction(serviceName, functionName, event, headers, qualifier, { rawBuf: true });
    const data = Buffer.isBuffer(reply.data) ? reply.data : JSON.stringify(reply.data);
    return { data: Buffer.from(data).toString('base64'), headers: reply.headers };
  },
  PutAsyncConfig: async (client, { serviceName, functionName, qualifier, asyncConfig }) =>
    (await client.putFunctionAsyncConfig(serviceName, functionName, qualifier, asyncConfig)).data,
  GetAsyncConfig: async (client, { serviceName, functionName, qualifier }) =>
    (await client.getFunctionAsyncConfig(serviceName, functionName, qualifier)).data,
  ListAsyncConfigs: async (client, { serviceName, functionName, ...options }) =>
    (await client.listFunctionAsyncConfigs(serviceName, functionName, options)).data,
  DeleteAsyncConfig: async (client, { serviceName, functionName, qualifier }) => {
    await client.deleteFunctionAsyncConfig(serviceName, functionName, qualifier);
    return {};
  },
};

async function perform(order) {
  const client = new FC('1234567890', {
    endpoint: `http://${order.address}`,
    accessKeyID: order.access_key_id,
    accessKeySecret: order.secret,
    region: 'cn-hangzhou',
    headers: { date: new Date(Date.now() - 1000 * order.seconds_ago).toUTCString() },
  });
  try {
    return { result: await CALLS[order.action](client, order.parameters) };
  } catch (error) {
    const found = /failed with (\d+)\. requestid: \S+, message: (.*)\.$/s.exec(error.message);
    if (!error.code || !found) throw error;
    return { error: { code: error.code, status: Number(found[1]), message: found[2], raised: error.name } };
  }
}

(async () => {
  for await (const line of readline.createInterface({ input: process.stdin })) {
    process.stdout.write(JSON.stringify(await perform(JSON.parse(line))) + '\n');
  }
})();
