"""Resources of tasks: names, actions, and the tag of deployment tools."""

from typing import Any

import pytest

from flowserver.language.graph import (
    ActionTarget,
    FlowTarget,
    FunctionTarget,
    Pattern,
    QueueTarget,
    Target,
    TaskStep,
    TopicTarget,
)
from flowserver.language.resources import ResourceError, expand_ref, parse_action, parse_resource
from flowserver.language.targets import known_parameters, offered_patterns, title_of
from tests.language.definitions import HEADER, diagnostics_of, step_of


@pytest.mark.parametrize(
    ("arn", "service", "qualifier", "function"),
    [
        ("acs:fc:cn-hangzhou:123456:services/demo/functions/echo", "demo", "", "echo"),
        ("acs:fc:::services/demo/functions/echo", "demo", "", "echo"),
        ("acs:fc:::services/fnf-demo.LATEST/functions/e_2-x", "fnf-demo", "LATEST", "e_2-x"),
        ("acs:fc:::services/s.3/functions/f", "s", "3", "f"),
        ("acs:fc:cn-x:1:functions/echo", "", "", "echo"),
        ("acs:fc:::functions/echo/prod", "", "prod", "echo"),
    ],
)
def test_functions(arn: str, service: str, qualifier: str, function: str) -> None:
    assert parse_resource(arn) == FunctionTarget(arn, service, qualifier, function)


@pytest.mark.parametrize("arn", ["acs:fnf:::flow/child", "acs:fnf:cn-x:123:flow/child"])
def test_flows(arn: str) -> None:
    assert parse_resource(arn) == FlowTarget(arn, "child")


@pytest.mark.parametrize("name", ["q", "2q", "Orders-1", "x" * 120])
def test_queues_and_topics(name: str) -> None:
    queue, topic = f"acs:mns:::/queues/{name}/messages", f"acs:mns:cn-x:123:/topics/{name}/messages"
    assert parse_resource(queue) == QueueTarget(queue, name)
    assert parse_resource(topic) == TopicTarget(topic, name)


@pytest.mark.parametrize(
    ("arn", "id"),
    [
        ("", "bad-resource"),
        ("echo", "bad-resource"),
        ("arn:fc:::functions/f", "bad-resource"),
        ("acs:fc::functions/f", "bad-resource"),
        ("acs:FC:::functions/f", "bad-resource"),
        ("acs:oss:::bucket", "bad-resource"),
        ("acs:fc:::functions/", "bad-resource"),
        ("acs:fc:::functions/2f", "bad-resource"),
        ("acs:fc:::functions/f\n", "bad-resource"),
        ("acs:fc:::functions/f/a/b", "bad-resource"),
        ("acs:fc:::services/s/functions/f/q", "bad-resource"),
        ("acs:fc:::services/s./functions/f", "bad-resource"),
        ("acs:fc:::services//functions/f", "bad-resource"),
        ("acs:fc:a/b::functions/f", "bad-resource"),
        ("acs:fnf:::flow/a/b", "bad-resource"),
        ("acs:fnf:::flow/" + "x" * 129, "bad-resource"),
        ("acs:mns:::queues/q/messages", "bad-resource"),
        ("acs:mns:::/queues/q", "bad-resource"),
        ("acs:mns:::/queues/q/messages/1", "bad-resource"),
        ("acs:mns:::/queues/-q/messages", "bad-resource"),
        ("acs:mns:::/queues/a_b/messages", "bad-resource"),
        ("acs:mns:::/topics/t.x/messages", "bad-resource"),
        ("acs:mns:::/topics//messages", "bad-resource"),
        ("acs:mns:::/queues/" + "x" * 121 + "/messages", "bad-resource"),
        ("acs:mns:::/subscriptions/s/messages", "bad-resource"),
    ],
)
def test_refused_resources(arn: str, id: str) -> None:
    with pytest.raises(ResourceError) as caught:
        parse_resource(arn)
    assert caught.value.id == id


def test_the_error_for_a_bad_queue_name_is_the_rule_and_not_the_form() -> None:
    with pytest.raises(ResourceError) as caught:
        parse_resource("acs:mns:::/queues/a_b/messages")
    assert "'a_b'" in caught.value.message
    assert "letters, digits or hyphens" in (caught.value.hint or "")


@pytest.mark.parametrize("action", ["fnf:StartExecution", "ocr:RecognizeIdentityCard", "goods-tech2:V2_Api"])
def test_actions(action: str) -> None:
    service, _, api = action.partition(":")
    assert parse_action(action) == ActionTarget(action, service, api)


@pytest.mark.parametrize(
    ("action", "id"),
    [
        ("", "bad-action"),
        ("StartExecution", "bad-action"),
        ("ocr:", "bad-action"),
        ("ocr:A:B", "bad-action"),
        ("ocr:Read ", "bad-action"),
        ("fnf:DescribeExecution", "unsupported-action"),
        ("FNF:StartExecution", "unsupported-action"),
    ],
)
def test_refused_actions(action: str, id: str) -> None:
    with pytest.raises(ResourceError) as caught:
        parse_action(action)
    assert caught.value.id == id


@pytest.mark.parametrize(
    ("target", "patterns", "title"),
    [
        (FunctionTarget("", "", "", "f"), set(Pattern), "a function"),
        (FlowTarget("", "f"), set(Pattern), "a flow"),
        (QueueTarget("", "q"), {Pattern.REQUEST_RESPONSE, Pattern.WAIT_FOR_CALLBACK}, "a queue"),
        (TopicTarget("", "t"), {Pattern.REQUEST_RESPONSE, Pattern.WAIT_FOR_CALLBACK}, "a topic"),
        (ActionTarget("ocr:Read", "ocr", "Read"), {Pattern.REQUEST_RESPONSE}, "an action"),
    ],
)
def test_patterns(target: Target, patterns: set[Pattern], title: str) -> None:
    assert (set(offered_patterns(target)), title_of(target)) == (patterns, title)


@pytest.mark.parametrize(
    ("target", "name", "accepted", "refused"),
    [
        (FunctionTarget("", "", "", "f"), "InvocationType", ["Sync", "Async"], ["async", None, 1, ["Async"]]),
        (FunctionTarget("", "", "", "f"), "StatefulAsyncInvocationID", ["a", None], ["1a", "", "x" * 129, 5]),
        (QueueTarget("", "q"), "MessageBody", ["text", None, {"a": 1}, [1], 5, True], [""]),
        (QueueTarget("", "q"), "Priority", [1, 16, None], [0, 17, "1", 1.0, True, [1]]),
        (QueueTarget("", "q"), "DelaySeconds", [0, 604_800, None], [-1, 604_801, "0", False]),
        (TopicTarget("", "t"), "MessageTag", ["x", "x" * 16, None], ["", "x" * 17, 5]),
        (TopicTarget("", "t"), "MessageAttributes", [{}, {"a": {"b": 1}}, '{"a": 1}', None], ["a", "[1]", 5, [1]]),
    ],
)
def test_parameters(target: Target, name: str, accepted: list[Any], refused: list[Any]) -> None:
    known = known_parameters(target)
    assert known is not None
    assert [value for value in (*accepted, *refused) if known[name].accepts(value)] == accepted


def test_ref_tags_are_expanded_where_they_are_allowed() -> None:
    step = step_of("- {type: task, name: a, resourceArn: !Ref demo-svc/echo}", allow_ref_tags=True)
    assert isinstance(step, TaskStep)
    arn = "acs:fc:::services/demo-svc/functions/echo"
    assert step.target == FunctionTarget(arn, "demo-svc", "", "echo")


@pytest.mark.parametrize("text", ["", "demo", "a/b/c", "/a", "a/", "acs:fc:::functions/f"])
def test_bad_refs_are_refused(text: str) -> None:
    with pytest.raises(ResourceError, match="does not name a function"):
        expand_ref(text)


@pytest.mark.parametrize(
    ("text", "ids"),
    [
        (HEADER + "- {type: task, name: a, resourceArn: !Ref demo}", ["bad-resource"]),
        (HEADER + "- {type: task, name: a, resourceArn: !Ref [s, f]}", ["tag-not-allowed", "wrong-type"]),
        (HEADER + "- {type: task, name: a, resourceArn: !Sub s/f}", ["bad-resource", "tag-not-allowed"]),
        (HEADER + "- {type: task, name: a, action: !Ref s/f}", ["bad-action", "tag-not-allowed"]),
        (HEADER + "- {type: pass, name: !Ref a}", ["tag-not-allowed"]),
        ("[resourceArn, !Ref s/f]", ["wrong-type", "tag-not-allowed"]),
        (
            "{? [a] : !Ref s/f}",
            ["bad-key", "missing-attribute", "missing-attribute", "missing-attribute", "tag-not-allowed"],
        ),
        ("!Ref s/f", ["tag-not-allowed", "wrong-type"]),
    ],
)
def test_other_tags_stay_refused(text: str, ids: list[str]) -> None:
    found = sorted(item.id for item in diagnostics_of(text, allow_ref_tags=True))
    assert found == sorted(ids)
