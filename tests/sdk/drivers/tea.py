"""alibabacloud-fnf20190315, in the release on PYTHONPATH, driven line by line; see tests/sdk/client.py.

The argument `async` makes it use the asynchronous methods.
"""

import asyncio
import json
import re
import sys
from datetime import UTC, datetime, timedelta

from alibabacloud_fnf20190315 import models
from alibabacloud_fnf20190315.client import Client
from alibabacloud_tea_openapi.models import Config
from Tea.exceptions import TeaException

try:
    from alibabacloud_tea_openapi.utils import Utils as Signing
except ImportError:  # releases before 0.4
    from alibabacloud_openapi_util.client import Client as Signing
try:
    from darabonba.runtime import RuntimeOptions
except ImportError:
    from alibabacloud_tea_util.models import RuntimeOptions

USE_ASYNC = sys.argv[1:] == ["async"]


def perform(order: dict) -> dict:
    config = Config(
        access_key_id=order["access_key_id"],
        access_key_secret=order["secret"],
        endpoint=order["address"],
        protocol="http",
    )
    request = getattr(models, f"{order['action']}Request")().from_map(order["parameters"])
    method = re.sub(r"(?<!^)(?=[A-Z])", "_", order["action"]).lower() + "_with_options"
    options = RuntimeOptions(read_timeout=70_000)
    try:
        if USE_ASYNC:
            response = asyncio.run(getattr(Client(config), f"{method}_async")(request, options))
        else:
            response = getattr(Client(config), method)(request, options)
    except TeaException as error:
        answer = {"code": error.code, "status": error.data["statusCode"], "message": error.message}
        return {"error": answer | {"raised": type(error).__name__}}
    return {"result": response.body.to_map()}


def sign_as_of(seconds_ago: int) -> None:
    then = datetime.now(UTC) - timedelta(seconds=seconds_ago)
    Signing.get_timestamp = staticmethod(lambda: then.strftime("%Y-%m-%dT%H:%M:%SZ"))


for line in sys.stdin:
    order = json.loads(line)
    sign_as_of(order["seconds_ago"])
    print(json.dumps(perform(order)), flush=True)
