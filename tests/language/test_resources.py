"""What tasks can run: resource names, actions, and the tag of deployment tools."""

import pytest

from flowserver.language.graph import ActionTarget, FlowTarget, FunctionTarget, Pattern, Target, TaskStep
from flowserver.language.resources import ResourceError, expand_ref, offered_patterns, parse_action, parse_resource
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
        ("acs:mns:cn-x:1:/queues/q/messages", "unsupported-resource"),
        ("acs:mns:::/topics/t/messages", "unsupported-resource"),
    ],
)
def test_resources_that_are_refused(arn: str, id: str) -> None:
    with pytest.raises(ResourceError) as caught:
        parse_resource(arn)
    assert caught.value.id == id


def test_queues_are_refused_clearly() -> None:
    with pytest.raises(ResourceError, match="queues and topics are not supported yet"):
        parse_resource("acs:mns:::/queues/q/messages")


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
def test_actions_that_are_refused(action: str, id: str) -> None:
    with pytest.raises(ResourceError) as caught:
        parse_action(action)
    assert caught.value.id == id


@pytest.mark.parametrize(
    ("target", "patterns"),
    [
        (FunctionTarget("", "", "", "f"), set(Pattern)),
        (FlowTarget("", "f"), set(Pattern)),
        (ActionTarget("ocr:Read", "ocr", "Read"), {Pattern.REQUEST_RESPONSE}),
    ],
)
def test_patterns(target: Target, patterns: set[Pattern]) -> None:
    assert offered_patterns(target) == patterns


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
