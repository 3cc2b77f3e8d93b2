"""alibabacloud-fc-open20210406, driven line by line; see tests/sdk/client.py. Bytes travel in base64."""

import base64
import json
import sys
from datetime import UTC, datetime, timedelta

from alibabacloud_fc_open20210406 import models
from alibabacloud_fc_open20210406.client import Client
from alibabacloud_tea_openapi.models import Config
from alibabacloud_tea_openapi.utils import Utils as Signing
from alibabacloud_tea_util.models import RuntimeOptions
from Tea.exceptions import TeaException


def invoke(
    client: Client, *, serviceName: str, functionName: str, payload: str, headers: dict, qualifier: str | None = None
) -> dict:
    wanted = models.InvokeFunctionHeaders(
        x_fc_invocation_type=headers.get("X-Fc-Invocation-Type"),
        x_fc_stateful_async_invocation_id=headers.get("X-Fc-Stateful-Async-Invocation-Id"),
    )
    request = models.InvokeFunctionRequest(body=base64.b64decode(payload), qualifier=qualifier)
    reply = client.invoke_function_with_options(serviceName, functionName, request, wanted, RuntimeOptions())
    return {"data": base64.b64encode(reply.body).decode(), "headers": reply.headers}


def put_config(client: Client, *, serviceName: str, functionName: str, qualifier: str, asyncConfig: dict) -> dict:
    request = models.PutFunctionAsyncInvokeConfigRequest().from_map({"qualifier": qualifier, **asyncConfig})
    return client.put_function_async_invoke_config(serviceName, functionName, request).body.to_map()


def get_config(client: Client, *, serviceName: str, functionName: str, **given: str) -> dict:
    request = models.GetFunctionAsyncInvokeConfigRequest(**given)
    return client.get_function_async_invoke_config(serviceName, functionName, request).body.to_map()


def list_configs(client: Client, *, serviceName: str, functionName: str, **given: object) -> dict:
    request = models.ListFunctionAsyncInvokeConfigsRequest().from_map(given)
    return client.list_function_async_invoke_configs(serviceName, functionName, request).body.to_map()


def delete_config(client: Client, *, serviceName: str, functionName: str, **given: str) -> dict:
    request = models.DeleteFunctionAsyncInvokeConfigRequest(**given)
    client.delete_function_async_invoke_config(serviceName, functionName, request)
    return {}


def get_task(client: Client, *, serviceName: str, functionName: str, task: str, **given: str) -> dict:
    request = models.GetStatefulAsyncInvocationRequest(**given)
    return client.get_stateful_async_invocation(serviceName, functionName, task, request).body.to_map()


def list_tasks(client: Client, *, serviceName: str, functionName: str, **given: object) -> dict:
    request = models.ListStatefulAsyncInvocationsRequest().from_map(given)
    return client.list_stateful_async_invocations(serviceName, functionName, request).body.to_map()


def stop_task(client: Client, *, serviceName: str, functionName: str, task: str, **given: str) -> dict:
    request = models.StopStatefulAsyncInvocationRequest(**given)
    client.stop_stateful_async_invocation(serviceName, functionName, task, request)
    return {}


def list_functions(client: Client, **given: object) -> dict:
    request = models.ListStatefulAsyncInvocationFunctionsRequest().from_map(given)
    return client.list_stateful_async_invocation_functions(request).body.to_map()


CALLS = {
    "Invoke": invoke,
    "PutAsyncConfig": put_config,
    "GetAsyncConfig": get_config,
    "ListAsyncConfigs": list_configs,
    "DeleteAsyncConfig": delete_config,
    "GetTask": get_task,
    "ListTasks": list_tasks,
    "StopTask": stop_task,
    "ListTaskFunctions": list_functions,
}


def perform(order: dict) -> dict:
    config = Config(
        access_key_id=order["access_key_id"],
        access_key_secret=order["secret"],
        endpoint=order["address"],
        protocol="http",
    )
    try:
        return {"result": CALLS[order["action"]](Client(config), **order["parameters"])}
    except TeaException as error:
        answer = {"code": error.code, "status": error.data["statusCode"], "message": error.message}
        return {"error": answer | {"raised": type(error).__name__}}


def sign_as_of(seconds_ago: int) -> None:
    then = datetime.now(UTC) - timedelta(seconds=seconds_ago)
    Signing.get_timestamp = staticmethod(lambda: then.strftime("%Y-%m-%dT%H:%M:%SZ"))


for line in sys.stdin:
    order = json.loads(line)
    sign_as_of(order["seconds_ago"])
    print(json.dumps(perform(order)), flush=True)
