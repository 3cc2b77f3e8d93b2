// @alicloud/mns, driven line by line; see tests/sdk/mns_client.py.
'use strict';

const readline = require('readline');
const loaded = require('../node/node_modules/@alicloud/mns');

const Client = loaded.default || loaded;

async function perform(order) {
  const client = new Client('1', {
    endpoint: `http://${order.address}`,
    accessKeyId: order.access_key_id,
    accessKeySecret: order.secret,
  });
  try {
    const { code, body, headers } = await client[order.method](...order.arguments);
    return { result: { code, body: body === undefined ? null : body, headers } };
  } catch (error) {
    return { error: { name: error.name, message: error.message } };
  }
}

(async () => {
  for await (const line of readline.createInterface({ input: process.stdin })) {
    process.stdout.write(JSON.stringify(await perform(JSON.parse(line))) + '\n');
  }
})();
