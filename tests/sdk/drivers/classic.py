"""aliyun-python-sdk-fnf, driven line by line; see tests/sdk/client.py."""

import json
import sys
import time
from importlib import import_module

from aliyunsdkcore.acs_exception.exceptions import ServerException
from aliyunsdkcore.client import AcsClient
from aliyunsdkcore.utils import parameter_helper

REGION = "cn-hangzhou"


def perform(order: dict) -> dict:
    client = AcsClient(order["access_key_id"], order["secret"], REGION, timeout=70)
    if order["address"] is not None:  # otherwise the production host, through a proxy
        client.add_endpoint(REGION, "fnf", order["address"])
    module = import_module(f"aliyunsdkfnf.request.v20190315.{order['action']}Request")
    request = getattr(module, f"{order['action']}Request")()
    request.set_protocol_type("http")  # StartSyncExecutionRequest insists on https by default
    for name, value in order["parameters"].items():
        getattr(request, f"set_{name}")(value)
    try:
        return {"result": json.loads(client.do_action_with_exception(request))}
    except ServerException as error:
        answer = {"code": error.get_error_code(), "status": error.get_http_status(), "message": error.get_error_msg()}
        return {"error": answer | {"raised": type(error).__name__}}


def sign_as_of(seconds_ago: int) -> None:
    parameter_helper.get_iso_8061_date = lambda: time.strftime(
        "%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() - seconds_ago)
    )


for line in sys.stdin:
    order = json.loads(line)
    sign_as_of(order["seconds_ago"])
    print(json.dumps(perform(order)), flush=True)
