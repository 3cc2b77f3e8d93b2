"""`flowserver queues` and `topics`: what there is, what waits, and sending by hand."""

import json

import httpx
import pytest

from tests.cli.conftest import one_line


@pytest.fixture
def flowserver(run, server, monkeypatch):
    monkeypatch.setenv("FLOWSERVER_URL", server.url)
    for path, kind in (("queues/work", "Queue"), ("topics/orders", "Topic")):
        content = f'<?xml version="1.0"?><{kind} xmlns="http://mns.aliyuncs.com/doc/v1/"/>'
        httpx.put(f"{server.url}/{path}", content=content, trust_env=False).raise_for_status()
    return run


def test_sent_peeked_and_purged(flowserver, tmp_path):
    assert flowserver("queues", "peek", "work").stderr == "No message can be received now.\n"
    assert flowserver("queues", "send", "work", "hello").stdout.startswith("sent ")
    (tmp_path / "body").write_text("from a file")
    identity = flowserver("queues", "send", "work", f"@{tmp_path}/body", "--base64", "-o", "name").stdout
    flowserver("queues", "send", "work", "-", "--delay", "1h", "--priority", "1", stdin="later")
    listed = flowserver("queues", "list").stdout.splitlines()
    assert [line.split() for line in listed] == [["QUEUE", "READY", "RECEIVED", "DELAYED"], ["work", "2", "0", "1"]]
    (counted,) = json.loads(flowserver("queues", "list", "-o", "json").stdout)
    assert (counted["ready"], counted["received"], counted["delayed"]) == (2, 0, 1)
    shown = json.loads(flowserver("queues", "peek", "work", "--limit", "9", "--base64", "-o", "json").stdout)
    assert [each["body"] for each in shown] == ["hello", "from a file"]
    assert flowserver("queues", "peek", "work", "--limit", "2", "-o", "name").stdout.splitlines()[1:] == [
        identity.strip()
    ]
    assert "hello" in flowserver("queues", "peek", "work").stdout
    asked = flowserver("queues", "purge", "work")
    assert (asked.exit_code, "Delete 3 messages of the queue work?" in asked.stderr) == (2, True)
    assert flowserver("queues", "purge", "work", "--yes").stdout == "deleted 3 messages of work\n"
    assert flowserver("queues", "list", "--prefix", "none", "-o", "json").stdout == "[]\n"


def test_topics(flowserver):
    assert flowserver("topics", "publish", "orders", "hello", "--tag", "paid").stdout.startswith("published ")
    assert flowserver("topics", "list").stdout.splitlines()[1].split() == ["orders", "0"]
    (shown,) = json.loads(flowserver("topics", "list", "-o", "json").stdout)
    assert (shown["name"], shown["undelivered"], shown["subscriptions"]) == ("orders", 0, [])


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["queues", "send", "wrok", "x"], "did you mean work?"),
        (["queues", "peek", "wrok"], "did you mean work?"),
        (["topics", "publish", "order", "x"], "did you mean orders?"),
    ],
)
def test_mistakes(flowserver, arguments, words):
    result = flowserver(*arguments)
    assert (result.exit_code, words in one_line(result)) == (3, True)


def test_an_empty_message_is_refused(flowserver):
    result = flowserver("queues", "send", "work", "")
    assert (result.exit_code, "the message is empty" in one_line(result)) == (2, True)
