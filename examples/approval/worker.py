"""Receives requests from the queue, asks the person at the terminal, and reports the answer: python worker.py [COUNT]

It uses the message service's SDK for the queue and the workflow service's for the report, and stops after COUNT
requests. FLOWSERVER_URL is the server; AK_ID and AK_SECRET are an access key, if the server has any.
"""

import getpass
import json
import os
import sys
import time

from aliyunsdkcore.acs_exception.exceptions import ClientException, ServerException
from aliyunsdkcore.client import AcsClient
from aliyunsdkfnf.request.v20190315.ReportTaskFailedRequest import ReportTaskFailedRequest
from aliyunsdkfnf.request.v20190315.ReportTaskSucceededRequest import ReportTaskSucceededRequest
from mns.account import Account
from mns.mns_exception import MNSExceptionBase
from mns.queue import QueueMeta

URL = os.environ.get("FLOWSERVER_URL", "http://127.0.0.1:8080")
KEY = os.environ.get("AK_ID", "any"), os.environ.get("AK_SECRET", "any")
REGION = "cn-hangzhou"

SECONDS_TO_DECIDE = 600
"""How long a request is hidden from other workers; without an answer by then, another worker receives it."""

POLL_SECONDS = 30

flows = AcsClient(*KEY, REGION)
flows.add_endpoint(REGION, "fnf", URL.partition("://")[2])
queue = Account(URL, *KEY).get_queue("approvals")


def receive():
    """The next request; waits until there is one, also while the server restarts."""
    while True:
        try:
            return queue.receive_message_with_str_body(POLL_SECONDS)
        except MNSExceptionBase as error:
            if error.type != "MessageNotExist":
                print(f"try again: {error.type}")
                time.sleep(1)


def ask(request):
    """Ask the person and make the report from the answer."""
    print(f"{request['request']}: {request['what']} for {request['amount']}?")
    answer = input("yes, or why not: ").strip()
    if answer == "yes":
        report = ReportTaskSucceededRequest()
        report.set_Output(json.dumps({"approvedBy": getpass.getuser()}))
    else:
        report = ReportTaskFailedRequest()
        report.set_Error("Rejected")
        report.set_Cause(answer or "no reason given")
    report.set_TaskToken(request["taskToken"])
    return report


def send(report):
    """Report, again and again while the server restarts: the person has answered."""
    while True:
        try:
            flows.do_action_with_exception(report)
            print("reported")
            return
        except ClientException as error:
            print(f"try again: {error.get_error_code()}")
            time.sleep(1)
        except ServerException as error:
            if error.get_error_code() == "TaskAlreadyCompleted":
                # The task timed out, was stopped, or has an answer already: a message may be received twice.
                print("the flow no longer waits for this answer")
                return
            if error.get_http_status() < 500:
                raise
            time.sleep(1)


def main():
    queue.create(QueueMeta(vis_timeout=SECONDS_TO_DECIDE))  # no error if the queue exists with the same attributes
    print("waiting for requests")
    left = int(sys.argv[1]) if len(sys.argv) > 1 else None
    while left is None or left > 0:
        message = receive()
        send(ask(json.loads(message.message_body)))
        queue.delete_message(message.receipt_handle)  # only now: earlier, a crash would lose the request
        left = None if left is None else left - 1


if __name__ == "__main__":
    main()
