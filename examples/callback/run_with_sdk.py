"""The callback tutorial with the service's own Python SDK: create the flow, start it, and let worker.py report.

FNF_ENDPOINT is the server's host:port; AK_ID and AK_SECRET are a key, if the server has any.
"""

import json
import os
import subprocess
import sys
import time
from pathlib import Path

from aliyunsdkcore.acs_exception.exceptions import ServerException
from aliyunsdkcore.client import AcsClient
from aliyunsdkfnf.request.v20190315.CreateFlowRequest import CreateFlowRequest
from aliyunsdkfnf.request.v20190315.DescribeExecutionRequest import DescribeExecutionRequest
from aliyunsdkfnf.request.v20190315.GetExecutionHistoryRequest import GetExecutionHistoryRequest
from aliyunsdkfnf.request.v20190315.StartExecutionRequest import StartExecutionRequest
from aliyunsdkfnf.request.v20190315.UpdateFlowRequest import UpdateFlowRequest

FOLDER = Path(__file__).parent
FLOW = "fnf-demo-callback"
REGION = "cn-hangzhou"
KEY = {"AK_ID": os.environ.get("AK_ID", "any"), "AK_SECRET": os.environ.get("AK_SECRET", "any")}

client = AcsClient(KEY["AK_ID"], KEY["AK_SECRET"], REGION, timeout=70)
client.add_endpoint(REGION, "fnf", os.environ.get("FNF_ENDPOINT", "127.0.0.1:8080"))


def call(request, **parameters):
    for name, value in parameters.items():
        getattr(request, f"set_{name}")(value)
    return json.loads(client.do_action_with_exception(request))


def put_flow():
    definition = (FOLDER / "flow.yaml").read_text("utf-8")
    try:
        call(CreateFlowRequest(), Name=FLOW, Definition=definition, Description="Callback tutorial", Type="FDL")
    except ServerException as error:
        if error.get_error_code() != "FlowAlreadyExists":
            raise
        call(UpdateFlowRequest(), Name=FLOW, Definition=definition)


def read_task_token(execution):
    """The token, from the output of the TaskSubmitted event."""
    for _ in range(50):
        events = call(GetExecutionHistoryRequest(), FlowName=FLOW, ExecutionName=execution)["Events"]
        for event in events:
            if event["Type"] == "TaskSubmitted":
                return json.loads(event["EventDetail"])["output"]["taskToken"]
        time.sleep(0.2)
    sys.exit("The task was not submitted: is `flowserver functions serve` running?")


def main():
    put_flow()
    execution = call(StartExecutionRequest(), FlowName=FLOW)["Name"]
    token = read_task_token(execution)
    worker = [sys.executable, str(FOLDER / "worker.py"), token]
    subprocess.run(worker, env=os.environ | KEY | {"ACCOUNT_ID": "any"}, check=True)
    ended = call(DescribeExecutionRequest(), FlowName=FLOW, ExecutionName=execution, WaitTimeSeconds=30)
    print(ended["Status"], ended["Output"])
    sys.exit(json.loads(ended["Output"] or "{}") != {"s": "ok"})


if __name__ == "__main__":
    main()
