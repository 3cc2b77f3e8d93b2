"""The polling tutorial with the service's own Python SDK: python run_with_sdk.py [seconds that the job takes]

FNF_ENDPOINT is the server's host:port; AK_ID and AK_SECRET are a key, if the server has any.
"""

import json
import os
import sys
from pathlib import Path

from aliyunsdkcore.acs_exception.exceptions import ServerException
from aliyunsdkcore.client import AcsClient
from aliyunsdkfnf.request.v20190315.CreateFlowRequest import CreateFlowRequest
from aliyunsdkfnf.request.v20190315.DescribeExecutionRequest import DescribeExecutionRequest
from aliyunsdkfnf.request.v20190315.GetExecutionHistoryRequest import GetExecutionHistoryRequest
from aliyunsdkfnf.request.v20190315.StartExecutionRequest import StartExecutionRequest
from aliyunsdkfnf.request.v20190315.UpdateFlowRequest import UpdateFlowRequest

FLOW = "fnf-demo-polling"
REGION = "cn-hangzhou"

# The SDK's default time-out is 10 seconds; DescribeExecution may wait for a minute.
client = AcsClient(os.environ.get("AK_ID", "any"), os.environ.get("AK_SECRET", "any"), REGION, timeout=70)
client.add_endpoint(REGION, "fnf", os.environ.get("FNF_ENDPOINT", "127.0.0.1:8080"))


def call(request, **parameters):
    for name, value in parameters.items():
        getattr(request, f"set_{name}")(value)
    return json.loads(client.do_action_with_exception(request))


def put_flow():
    definition = (Path(__file__).parent / "flow.yaml").read_text("utf-8")
    try:
        call(CreateFlowRequest(), Name=FLOW, Definition=definition, Description="Polling tutorial", Type="FDL")
    except ServerException as error:
        if error.get_error_code() != "FlowAlreadyExists":
            raise
        call(UpdateFlowRequest(), Name=FLOW, Definition=definition)


def run(delay):
    """Start an execution and wait for its end."""
    execution = call(StartExecutionRequest(), FlowName=FLOW, Input=json.dumps({"delay": delay}))
    while execution["Status"] == "Running":
        execution = call(DescribeExecutionRequest(), FlowName=FLOW, ExecutionName=execution["Name"], WaitTimeSeconds=60)
    return execution


def print_history(execution):
    history = GetExecutionHistoryRequest()
    for event in call(history, FlowName=FLOW, ExecutionName=execution["Name"], Limit=1000)["Events"]:
        print(event["Time"], event["Type"], event["StepName"], event["EventDetail"])


def main():
    put_flow()
    execution = run(int(sys.argv[1]) if len(sys.argv) > 1 else 20)
    print_history(execution)
    print(execution["Status"], execution["Output"])
    sys.exit(execution["Status"] != "Succeeded")


if __name__ == "__main__":
    main()
