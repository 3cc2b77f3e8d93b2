"""Tasks that send to queues and publish to topics."""

from typing import Any

import pytest

from flowserver.base.errors import InvalidArgument
from flowserver.language.graph import QueueTarget, TopicTarget
from flowserver.machine.commands import CancelInvocation
from flowserver.machine.events import EventType
from flowserver.machine.messages import Failure, Success
from flowserver.machine.sent_messages import checked_body, checked_tag, message_body, message_id, reply_of
from flowserver.machine.service_params import child_input
from flowserver.machine.state import Status, WaitKind
from tests.support.flows import flow
from tests.support.world import World

QUEUE, TOPIC = "acs:mns:::/queues/jobs/messages", "acs:mns:::/topics/news/messages"
SENT = Success({"MessageId": "1", "RequestId": "2", "MessageBodyMD5": "3"})


def _started(arn: str, params: str, *attributes: str) -> World:
    head = f"- type: task\n  name: t\n  resourceArn: {arn}\n  serviceParams: {params}\n"
    world = World(flow(head + "".join(f"  {line}\n" for line in attributes)), input={"n": 1})
    world.start()
    return world


def test_a_message_is_sent_and_its_ids_are_the_result() -> None:
    world = _started(QUEUE, "{MessageBody: $, Priority: 3, DelaySeconds: $.n}")
    (call,) = world.calls
    assert (call.target, call.token, call.asynchronous) == (QueueTarget(QUEUE, "jobs"), None, False)
    assert call.params == {"MessageBody": {"n": 1}, "Priority": 3, "DelaySeconds": 1}
    world.reply(SENT)
    assert world.execution.output == SENT.output
    assert world.event(EventType.TASK_SCHEDULED)["resourceArn"] == QUEUE


def test_a_topic_gets_a_tag() -> None:
    (call,) = _started(TOPIC, "{MessageBody: hello, MessageTag: a, MessageAttributes: {k: $.n}}").calls
    assert call.target == TopicTarget(TOPIC, "news")
    assert call.params == {"MessageBody": "hello", "MessageTag": "a", "MessageAttributes": {"k": 1}}


@pytest.mark.parametrize("arn", [QUEUE, TOPIC])
def test_a_worker_reports_with_the_token_in_the_message(arn: str) -> None:
    mapping = "inputMappings: [{target: token, source: $context.task.token}]"
    world = _started(arn, "{MessageBody: $}", "pattern: waitForCallback", mapping)
    (call,) = world.calls
    assert (call.token, call.params) == ("token-1-2", {"MessageBody": {"token": "token-1-2"}})
    world.reply(SENT)
    assert (world.scope.wait, world.event(EventType.TASK_SUBMITTED)) == (WaitKind.TOKEN, {"output": SENT.output})
    world.report(Success({"done": True}))
    assert (world.execution.output, world.stopped) == ({"done": True}, [])


def test_a_time_out_does_not_withdraw_the_message_and_a_retry_sends_another() -> None:
    retry = "retry: [{errors: [FnF.TaskTimeout], maxAttempts: 1}]"
    world = _started(QUEUE, "{MessageBody: $}", "pattern: waitForCallback", "timeoutSeconds: 9", retry)
    world.reply(SENT)
    assert world.wake().commands == []
    world.wake()
    assert [call.submission_key for call in world.calls] == ["id1-2-1", "id1-2-3"]
    assert world.wake().commands == [CancelInvocation(1, 3)]


@pytest.mark.parametrize(
    ("arn", "params", "cause"),
    [
        (QUEUE, "{MessageBody: $.empty}", "MessageBody must not be an empty text"),
        (QUEUE, "{MessageBody: $, Priority: $.p}", "Priority must be a whole number from 1 to 16"),
        (QUEUE, "{MessageBody: $, DelaySeconds: $.p}", "DelaySeconds must be a whole number from 0 to 604800"),
        (TOPIC, "{MessageBody: $, MessageTag: $.p}", "MessageTag must be a text of 1 to 16 characters"),
        (
            TOPIC,
            "{MessageBody: $, MessageAttributes: $.p}",
            "MessageAttributes must be an object, or its JSON text",
        ),
    ],
)
def test_parameters_that_queues_and_topics_reject_fail_the_attempt(arn: str, params: str, cause: str) -> None:
    world = _started(arn, params, "inputMappings: [{target: p, source: [1]}, {target: empty, source: ''}]")
    assert (world.execution.status, world.execution.error) == (Status.FAILED, "MNS.InvalidArgument")
    assert (world.execution.cause, world.calls) == (f"serviceParams.{cause}", [])


def test_a_missing_queue_is_an_error_that_can_be_caught() -> None:
    world = _started(QUEUE, "{MessageBody: $}", "catch: [{errors: [MNS.QueueNotExist], goto: t}]")
    world.reply(Failure("MNS.QueueNotExist", "no jobs"))
    assert (len(world.calls), world.execution.status) == (2, Status.RUNNING)


@pytest.mark.parametrize(
    ("given", "text"), [("a b", "a b"), ({"a": [1, "ü"]}, '{"a":[1,"ü"]}'), (5, "5"), (None, "null")]
)
def test_bodies(given: Any, text: str) -> None:
    assert message_body({"MessageBody": given}) == text


def test_the_ids_of_a_message_follow_from_the_attempt() -> None:
    (call,) = _started(QUEUE, "{MessageBody: $}").calls
    (same,) = _started(QUEUE, "{MessageBody: $, Priority: 3}").calls
    assert message_id(call) == message_id(same) == reply_of(call, "D")["MessageId"]
    assert reply_of(call, "D") == reply_of(same, "D")
    assert reply_of(call, "D")["MessageBodyMD5"] == "D"
    assert call.submission_request_id == same.submission_request_id


def test_a_body_or_tag_that_cannot_arrive_is_refused() -> None:
    assert (checked_body("ü"), checked_tag("ü"), checked_tag(None)) == ("ü", "ü", None)
    with pytest.raises(InvalidArgument, match=r"U\+0001"):
        checked_body("\x01")
    with pytest.raises(InvalidArgument, match="printable"):
        checked_tag("a\nb")


@pytest.mark.parametrize(
    ("params", "text"),
    [
        (None, '{"own":1}'),
        ({"Input": None}, '{"own":1}'),
        ({"Input": {"a": 1}}, '{"a":1}'),
        ({"Input": '{"a": 1}'}, '{"a": 1}'),
    ],
)
def test_a_sub_flow_gets_its_parameter_or_the_input_of_the_step(params: Any, text: str) -> None:
    assert child_input(params, {"own": 1}) == text
