// @alicloud/fnf-2019-03-15, driven line by line; see tests/sdk/client.py.
'use strict';

const readline = require('readline');
const FnF = require('../node/node_modules/@alicloud/fnf-2019-03-15');

async function perform(order) {
  const client = new FnF({
    endpoint: `http://${order.address}`,
    accessKeyId: order.access_key_id,
    accessKeySecret: order.secret,
    opts: { timeout: 70000 },
  });
  const signedAt = new Date(Date.now() - 1000 * order.seconds_ago).toISOString().replace(/\.\d+Z$/, 'Z');
  const parameters = { ...order.parameters, Timestamp: signedAt };
  const method = order.action[0].toLowerCase() + order.action.slice(1);
  try {
    // The package lacks StartSyncExecution; its users call such actions by name.
    const result = await (client[method]
      ? client[method](parameters)
      : client.request(order.action, parameters, { method: 'POST' }));
    return { result };
  } catch (error) {
    if (!error.code || !error.data) throw error;
    const status = error.entry.response.statusCode;
    return { error: { code: error.code, status, message: error.data.Message, raised: error.name } };
  }
}

(async () => {
  for await (const line of readline.createInterface({ input: process.stdin })) {
    process.stdout.write(JSON.stringify(await perform(JSON.parse(line))) + '\n');
  }
})();
