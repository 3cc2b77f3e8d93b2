"""`flowserver tasks` answers a waiting task; `flowserver status` shows executions that need attention."""

import json

import httpx
import pytest

from flowserver.client import Client
from tests.cli.conftest import one_line

ASK = """\
version: v1
type: flow
steps:
  - type: task
    name: ask
    resourceArn: acs:mns:::/queues/questions/messages
    pattern: waitForCallback
    outputMappings: [{target: approved, source: $local.approved}]
    serviceParams: {MessageBody: $}
    inputMappings: [{target: taskToken, source: $context.task.token}]
"""


@pytest.fixture
def flowserver(run, server, monkeypatch):
    monkeypatch.setenv("FLOWSERVER_URL", server.url)
    return run


@pytest.fixture
def asked(flowserver, server):
    """Starts an execution whose task waits; returns its path and its task's token."""
    with Client(server.url) as client:
        body = '<?xml version="1.0"?><Queue xmlns="http://mns.aliyuncs.com/doc/v1/"/>'
        httpx.put(f"{server.url}/queues/questions", content=body, trust_env=False).raise_for_status()

        def start():
            client.put_flow("ask", ASK)
            started = client.start("ask")
            token = ""
            for event in client.events("ask", started.name):
                token = event.detail.get("input", {}).get("taskToken") or token
                if event.type == "TaskSubmitted":
                    break
            return started.path, token

        yield start


def test_a_task_succeeds_or_fails(flowserver, asked, tmp_path):
    path, token = asked()
    done = flowserver("tasks", "succeed", token, "--output", '{"approved": true}')
    assert done.exit_code == 0
    assert json.loads(flowserver("watch", path, "-q").stdout) == {"approved": True}
    assert flowserver("tasks", "succeed", token).exit_code == 5
    path, token = asked()
    (tmp_path / "token").write_text(f"{token}\n")
    assert flowserver("tasks", "fail", f"@{tmp_path}/token", "--error", "Rejected", "--cause", "no").exit_code == 0
    failed = flowserver("watch", path, "-q")
    assert failed.exit_code == 1
    assert one_line(failed).endswith("Rejected: no")
    assert flowserver("tasks", "fail", "nonsense", "--error", "E").exit_code == 1


def test_waiting_tasks_are_listed(flowserver, asked):
    for _, waiting in ((each["executionName"], each["taskToken"]) for each in _listed(flowserver)):
        flowserver("tasks", "fail", waiting, "--error", "Cleared")
    pairs = [asked() for _ in range(3)]
    listed = _listed(flowserver, "--flow", "ask")
    assert [(f"ask/{each['executionName']}", each["taskToken"]) for each in listed] == pairs
    assert {each["stepName"] for each in listed} == {"ask"}
    assert _listed(flowserver, "--older-than", "1d") == []
    assert flowserver("tasks", "list", "--older-than", "1d").stderr == "No task has waited for 1d.\n"
    assert flowserver("tasks", "list", "--flow", "aks").exit_code == 3
    wrong = flowserver("tasks", "succeed", pairs[0][0])
    assert (wrong.exit_code, "flowserver tasks list --flow ask" in one_line(wrong)) == (2, True)
    table = flowserver("tasks", "list").stdout
    assert table.splitlines()[0].split() == ["EXECUTION", "STEP", "SINCE", "DUE", "TOKEN"]
    assert flowserver("tasks", "list", "-o", "name").stdout.split() == [token for _, token in pairs]
    done = flowserver("tasks", "succeed", "-", "--output", '{"approved": 1}', stdin=pairs[1][1])
    assert done.exit_code == 0
    assert len(_listed(flowserver)) == 2


def _listed(flowserver, *arguments):
    return json.loads(flowserver("tasks", "list", *arguments, "-o", "json").stdout)


def test_status(flowserver, server, asked):
    asked()
    shown = flowserver("status")
    assert server.url in shown.stdout
    assert flowserver("status", "-o", "name").stdout == f"{server.url}\n"
    assert "Look: flowserver tasks list\n" in shown.stderr
    document = json.loads(flowserver("status", "-o", "json").stdout)
    assert (document["ready"], document["nodes"]) == (True, 1)
    assert document["runningExecutions"] >= 1
    assert document["waitingTasks"] >= 1


def test_a_file_is_compared_with_a_flow(flowserver, asked, tmp_path, monkeypatch):
    asked()
    monkeypatch.chdir(tmp_path)
    (tmp_path / "ask.yaml").write_text(ASK)
    same = flowserver("flows", "diff", "ask")
    assert (same.exit_code, same.stdout) == (0, "")
    differs = flowserver("flows", "diff", "ask", "-", stdin=ASK.replace("approved", "granted"))
    assert differs.exit_code == 1
    assert "+    outputMappings: [{target: granted, source: $local.granted}]" in differs.stdout
    assert flowserver("flows", "diff", "aks", "ask.yaml").exit_code == 3
