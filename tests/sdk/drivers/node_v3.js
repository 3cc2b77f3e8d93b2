// @alicloud/openapi-client, which signs with ACS3 and has no package for FnF, driven line by line; see tests/sdk/client.py.
'use strict';

const readline = require('readline');
const { default: Client, Config, OpenApiRequest, Params } = require('../node/node_modules/@alicloud/openapi-client');
const { default: Signing } = require('../node/node_modules/@alicloud/openapi-util');
const { RuntimeOptions } = require('../node/node_modules/@alicloud/tea-util');

async function perform(order) {
  const config = new Config({
    accessKeyId: order.access_key_id,
    accessKeySecret: order.secret,
    endpoint: order.address,
    protocol: 'http',
  });
  const signedAt = new Date(Date.now() - 1000 * order.seconds_ago).toISOString().replace(/\.\d+Z$/, 'Z');
  Signing.getTimestamp = () => signedAt;
  const params = new Params({
    action: order.action,
    version: '2019-03-15',
    protocol: 'HTTP',
    pathname: '/',
    method: 'POST',
    authType: 'AK',
    style: 'RPC',
    reqBodyType: 'formData',
    bodyType: 'json',
  });
  const request = new OpenApiRequest({ body: Signing.query(order.parameters) });
  try {
    const reply = await new Client(config).callApi(params, request, new RuntimeOptions({ readTimeout: 70000 }));
    return { result: reply.body };
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
