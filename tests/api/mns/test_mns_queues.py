"""Queues over the wire: created, changed, listed, deleted."""

import pytest

from tests.api.mns.conftest import Mns, document

ATTRIBUTES = {
    "DelaySeconds": "3",
    "MaximumMessageSize": "2048",
    "MessageRetentionPeriod": "600",
    "VisibilityTimeout": "45",
    "PollingWaitSeconds": "10",
    "LoggingEnabled": "True",
}


async def test_a_queue_has_the_attributes_it_was_given(mns: Mns) -> None:
    reply = await mns.ask(201, "PUT", "/queues/q", document("Queue", **ATTRIBUTES))
    assert reply.headers["location"] == "http://127.0.0.1:8080/queues/q"
    fields = (await mns.ask(200, "GET", "/queues/q")).fields
    assert {name: fields[name] for name in ATTRIBUTES} == ATTRIBUTES
    assert fields["QueueName"] == "q"
    assert fields["CreateTime"] == fields["LastModifyTime"]
    assert len(fields["CreateTime"] or "") == 10, "in seconds"
    assert [fields[name] for name in ("ActiveMessages", "InactiveMessages", "DelayMessages")] == ["0", "0", "0"]


async def test_defaults_are_as_documented(mns: Mns) -> None:
    await mns.ask(201, "PUT", "/queues/q")
    fields = (await mns.ask(200, "GET", "/queues/q")).fields
    assert [fields[name] for name in ATTRIBUTES] == ["0", "65536", "345600", "30", "0", "False"]


async def test_creating_again_with_the_same_attributes_is_harmless(mns: Mns) -> None:
    await mns.make_queue("q", VisibilityTimeout=45)
    reply = await mns.ask(204, "PUT", "/queues/q", document("Queue", VisibilityTimeout=45))
    assert reply.headers["location"].endswith("/queues/q")
    await mns.refused(409, "QueueAlreadyExist", "PUT", "/queues/q", document("Queue", VisibilityTimeout=46))


@pytest.mark.parametrize("spelling", ["metaoverride=true", "metaOverride=True"])
async def test_attributes_are_changed_and_others_stay(mns: Mns, spelling: str) -> None:
    await mns.make_queue("q", VisibilityTimeout=45, DelaySeconds=1)
    await mns.ask(204, "PUT", f"/queues/q?{spelling}", document("Queue", DelaySeconds=2))
    fields = (await mns.ask(200, "GET", "/queues/q")).fields
    assert (fields["VisibilityTimeout"], fields["DelaySeconds"]) == ("45", "2")
    await mns.refused(404, "QueueNotExist", "PUT", f"/queues/none?{spelling}", document("Queue", DelaySeconds=2))


async def test_deleting_twice_is_harmless(mns: Mns) -> None:
    await mns.make_queue()
    await mns.put("a")
    await mns.ask(204, "DELETE", "/queues/q")
    await mns.ask(204, "DELETE", "/queues/q")
    await mns.refused(404, "QueueNotExist", "GET", "/queues/q")
    await mns.make_queue()
    await mns.refused(404, "MessageNotExist", "GET", "/queues/q/messages")


async def test_lists_come_in_pages_by_prefix(mns: Mns) -> None:
    assert (await mns.ask(200, "GET", "/queues")).items == []
    for name in ("b1", "a1", "a2", "a3"):
        await mns.make_queue(name)
    urls: list[str | None] = []
    marker: str | None = ""
    while marker is not None:
        given = {"x-mns-prefix": "a", "x-mns-ret-number": "2", **({"x-mns-marker": marker} if marker else {})}
        reply = await mns.ask(200, "GET", "/queues", **given)
        urls += [item["QueueURL"] for item in reply.items]
        marker = reply.fields.get("NextMarker")
    assert urls == [f"http://127.0.0.1:8080/queues/{name}" for name in ("a1", "a2", "a3")]
    full = await mns.ask(200, "GET", "/queues", **{"x-mns-with-meta": "true", "x-mns-prefix": "b"})
    assert full.items[0]["QueueName"] == "b1"
    assert full.items[0]["VisibilityTimeout"] == "30"


@pytest.mark.parametrize("number", ["0", "1001", "-1", "x", ""])
async def test_a_page_has_one_to_a_thousand(mns: Mns, number: str) -> None:
    await mns.refused(400, "InvalidArgument", "GET", "/queues", **{"x-mns-ret-number": number})


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("DelaySeconds", "604801"),
        ("DelaySeconds", "-1"),
        ("DelaySeconds", "1.5"),
        ("MaximumMessageSize", "1023"),
        ("MaximumMessageSize", "65537"),
        ("MessageRetentionPeriod", "59"),
        ("MessageRetentionPeriod", "604801"),
        ("VisibilityTimeout", "0"),
        ("VisibilityTimeout", "43201"),
        ("PollingWaitSeconds", "31"),
        ("LoggingEnabled", "perhaps"),
    ],
)
async def test_attributes_have_ranges(mns: Mns, name: str, value: str) -> None:
    await mns.refused(400, "InvalidArgument", "PUT", "/queues/q", document("Queue", **{name: value}))


@pytest.mark.parametrize(
    ("name", "code"),
    [
        ("-a", "InvalidQueueName"),
        ("a_b", "InvalidQueueName"),
        ("a%20b", "InvalidQueueName"),
        ("a" * 121, "QueueNameLengthError"),
    ],
)
async def test_names_follow_the_rule(mns: Mns, name: str, code: str) -> None:
    await mns.refused(400, code, "PUT", f"/queues/{name}")
    await mns.refused(400, code, "GET", f"/queues/{name}/messages")
    await mns.ask(201, "PUT", f"/queues/{'a' * 120}")


async def test_the_account_has_no_log_bucket(mns: Mns) -> None:
    assert (await mns.ask(200, "GET", "/?accountmeta=true")).fields == {"LoggingBucket": None}
    await mns.ask(204, "PUT", "/?accountmeta=true", document("Account", LoggingBucket=""))
    await mns.refused(400, "InvalidArgument", "PUT", "/?accountmeta=true", document("Account", LoggingBucket="b"))
