"""aliyun-fc2, driven line by line; see tests/sdk/client.py. Bytes travel in base64."""

import base64
import email.utils
import json
import logging
import sys
import time

import fc2
from fc2.fc_exceptions import FcError

logging.disable(logging.CRITICAL)  # the SDK logs what it raises


def invoke(client: fc2.Client, *, payload: str, headers: dict, **names: str) -> dict:
    reply = client.invoke_function(**names, payload=base64.b64decode(payload), headers=dict(headers))
    return {"data": base64.b64encode(reply.data).decode(), "headers": lowered(reply.headers)}


def lowered(headers: dict) -> dict:
    return {name.lower(): value for name, value in headers.items()}


CALLS = {
    "Invoke": invoke,
    "PutAsyncConfig": lambda client, **given: client.put_function_async_invoke_config(**given).data,
    "GetAsyncConfig": lambda client, **given: client.get_function_async_invoke_config(**given).data,
    "ListAsyncConfigs": lambda client, **given: client.list_function_async_invoke_configs(**given).data,
    "DeleteAsyncConfig": lambda client, **given: client.delete_function_async_invoke_config(**given) or {},
}


def perform(order: dict) -> dict:
    keys = {"accessKeyID": order["access_key_id"], "accessKeySecret": order["secret"]}
    client = fc2.Client(endpoint=f"http://{order['address']}", **keys)
    try:
        return {"result": CALLS[order["action"]](client, **order["parameters"])}
    except FcError as error:
        message = json.loads(error.message)
        text = message.get("ErrorMessage", message.get("errorMessage", ""))
        raised = {"raised": type(error).__name__, "code": error.err_code, "status": error.status_code}
        return {"error": raised | {"message": text}}


def sign_as_of(seconds_ago: int) -> None:
    email.utils.formatdate = lambda usegmt: FORMATDATE(time.time() - seconds_ago, usegmt=usegmt)


FORMATDATE = email.utils.formatdate

for line in sys.stdin:
    order = json.loads(line)
    sign_as_of(order["seconds_ago"])
    print(json.dumps(perform(order)), flush=True)
