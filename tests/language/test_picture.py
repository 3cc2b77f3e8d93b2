"""Pictures of flows: nodes, lists, and the edges that control can take."""

from pathlib import Path

import pytest

from flowserver.language.picture import Call, CallKind, GraphEdgeKind, ListKind, Loop, Node, Pause, Picture, picture_of
from tests.language.definitions import HEADER, flow_of

EXAMPLES = Path(__file__).parents[2] / "examples"


def picture(text: str) -> Picture:
    return picture_of(flow_of(text))


def node(text: str) -> Node:
    """The node of the first step of a flow that consists of the steps in `text`."""
    return picture(HEADER + text).nodes[0]


def ways(drawn: Picture) -> list[str]:
    """The edges, with names for numbers."""
    names = [each.name for each in drawn.nodes]
    return [
        f"{names[edge.source]} -{edge.kind}{'' if edge.index is None else edge.index}-> "
        f"{'' if edge.target is None else names[edge.target]}"
        for edge in drawn.edges
    ]


def test_the_polling_tutorial() -> None:
    drawn = picture((EXAMPLES / "polling" / "flow.yaml").read_text())
    assert [(each.name, each.type, each.title) for each in drawn.nodes] == [
        ("StartJob", "task", "fnf-demo/StartJob"),
        ("Init", "pass", None),
        ("Wait10s", "wait", "10s"),
        ("GetJobStatus", "task", "fnf-demo/GetJobStatus"),
        ("CheckJobComplete", "choice", None),
        ("JobSucceeded", "succeed", None),
        ("JobFailed", "fail", "FnF.Failed"),
    ]
    assert ways(drawn) == [
        "StartJob -next-> Init",
        "Init -next-> Wait10s",
        "Wait10s -next-> GetJobStatus",
        "GetJobStatus -next-> CheckJobComplete",
        "CheckJobComplete -option0-> JobSucceeded",
        "CheckJobComplete -option1-> JobFailed",
        "CheckJobComplete -option2-> Wait10s",
        "CheckJobComplete -default-> JobSucceeded",
        "JobSucceeded -end-> ",
        "JobFailed -end-> ",
    ]
    assert [edge.label for edge in drawn.edges if edge.label] == [
        '$.status == "success"',
        "$.try_count > 3",
        '$.status == "running"',
    ]
    [steps] = drawn.lists
    assert (steps.kind, steps.parent, steps.index, steps.nodes) == (ListKind.ROOT, None, None, tuple(range(7)))


def test_the_callback_tutorial() -> None:
    drawn = picture((EXAMPLES / "callback" / "flow.yaml").read_text())
    [only] = drawn.nodes
    assert only.call == Call(CallKind.FUNCTION, "fnf-demo/echo", "waitForCallback", None, 0, None)
    assert ways(drawn) == ["mytask -next-> "]


def test_catch_rules_are_edges() -> None:
    drawn = picture((EXAMPLES / "approval" / "flow.yaml").read_text())
    caught = [edge for edge in drawn.edges if edge.kind is GraphEdgeKind.CATCH]
    assert [(edge.label, edge.index, edge.target) for edge in caught] == [
        ("Rejected", 0, 2),
        ("FnF.TaskTimeout", 1, 3),
    ]


NESTED = """\
version: v1
type: flow
steps:
  - type: parallel
    name: both
    branches:
      - steps: [{type: pass, name: left}]
      - steps:
          - type: foreach
            name: pack
            iterationMapping: {collection: $.items, item: item, index: number}
            steps:
              - type: choice
                name: check
                choices:
                  - condition: $.item == 1
                    steps: [{type: pass, name: one}]
                  - condition: $.item == 2
                    steps: [{type: pass, name: two}]
                    goto: after
                  - condition: $.item == 3
                    goto: after
                default:
                  steps: [{type: pass, name: one}]
                  goto: after
              - {type: pass, name: before}
              - {type: pass, name: after, end: true}
  - type: choice
    name: last
    default: {}
"""


def test_lists_within_steps() -> None:
    drawn = picture(NESTED)
    assert [each.path for each in drawn.nodes] == [
        "both",
        "both[0].left",
        "both[1].pack",
        "both[1].pack[].check",
        "both[1].pack[].check.one",
        "both[1].pack[].check.two",
        "both[1].pack[].check.one",
        "both[1].pack[].before",
        "both[1].pack[].after",
        "last",
    ]
    assert [each.parent for each in drawn.nodes] == [None, 0, 0, 2, 3, 3, 3, 2, 2, None]
    assert [(steps.kind, steps.parent, steps.index, steps.nodes) for steps in drawn.lists] == [
        (ListKind.ROOT, None, None, (0, 9)),
        (ListKind.BRANCH, 0, 0, (1,)),
        (ListKind.BRANCH, 0, 1, (2,)),
        (ListKind.ITERATION, 2, None, (3, 7, 8)),
        (ListKind.OPTION, 3, 0, (4,)),
        (ListKind.OPTION, 3, 1, (5,)),
        (ListKind.DEFAULT, 3, None, (6,)),
    ]
    assert all(each.list == steps.id for steps in drawn.lists for each in (drawn.nodes[n] for n in steps.nodes))
    assert drawn.nodes[2].foreach == Loop("$.items", "item", "number")
    assert ways(drawn) == [
        "both -branch0-> left",
        "both -branch1-> pack",
        "both -next-> last",
        "left -next-> ",
        "pack -iteration-> check",
        "pack -next-> ",
        "check -option0-> one",
        "check -option1-> two",
        "check -goto1-> after",
        "check -option2-> after",
        "check -default-> one",
        "check -goto-> after",
        "check -next-> before",
        "one -next-> ",
        "two -next-> ",
        "one -next-> ",
        "before -next-> after",
        "after -end-> ",
        "last -default-> ",
    ]


def test_lines() -> None:
    drawn = picture(NESTED)
    assert [(each.name, each.line, each.end_line) for each in drawn.nodes[:4]] == [
        ("both", 4, 27),
        ("left", 7, 7),
        ("pack", 9, 27),
        ("check", 13, 25),
    ]
    text = "- type: fail\n  name: f\n  cause: |\n    two\n    lines\n\n# a comment\n- {type: pass, name: p}\n"
    assert (node(text).line, node(text).end_line) == (4, 9)


@pytest.mark.parametrize(
    ("target", "call", "title"),
    [
        (
            "resourceArn: acs:fc:::services/shop.prod/functions/pay",
            Call(CallKind.FUNCTION, "shop.prod/pay", "requestResponse", None, 0, None),
            "shop.prod/pay",
        ),
        (
            "resourceArn: acs:fc:::functions/pay/2",
            Call(CallKind.FUNCTION, "pay", "requestResponse", None, 0, None),
            "pay",
        ),
        (
            "resourceArn: acs:fnf:::flow/charge\n  pattern: sync\n  timeoutSeconds: 9",
            Call(CallKind.FLOW, "charge", "sync", "charge", 0, 9),
            "flow charge",
        ),
        (
            "resourceArn: acs:mns:::/queues/q/messages\n  serviceParams: {MessageBody: $}",
            Call(CallKind.QUEUE, "q", "requestResponse", None, 0, None),
            "queue q",
        ),
        (
            "resourceArn: acs:mns:::/topics/t/messages\n  serviceParams: {MessageBody: $}",
            Call(CallKind.TOPIC, "t", "requestResponse", None, 0, None),
            "topic t",
        ),
        (
            "action: fnf:StartExecution\n  serviceParams: {FlowName: charge}",
            Call(CallKind.ACTION, "fnf:StartExecution", "requestResponse", "charge", 0, None),
            "action charge",
        ),
        (
            "action: fnf:StartExecution\n  serviceParams: {FlowName: $.flow}",
            Call(CallKind.ACTION, "fnf:StartExecution", "requestResponse", None, 0, None),
            "action fnf:StartExecution",
        ),
        (
            "action: ecs:Stop\n  retry: [{errors: [A], maxAttempts: 2}, {errors: [B], maxAttempts: 7}]",
            Call(CallKind.ACTION, "ecs:Stop", "requestResponse", None, 7, None),
            "action ecs:Stop",
        ),
    ],
)
def test_calls(target: str, call: Call, title: str) -> None:
    drawn = node(f"- type: task\n  name: t\n  {target}\n")
    assert (drawn.call, drawn.title) == (call, title)


@pytest.mark.parametrize(
    ("written", "wait", "title"),
    [
        ("duration: 0", Pause(0, None, None), "0s"),
        ("duration: $.seconds", Pause(None, None, "$.seconds"), "$.seconds"),
        ("timestamp: $.at", Pause(None, None, "$.at"), "$.at"),
        ("timestamp: 2030-01-01T00:00:00Z", Pause(None, "2030-01-01T00:00:00.000Z", None), None),
    ],
)
def test_waits(written: str, wait: Pause, title: str | None) -> None:
    drawn = node(f"- {{type: wait, name: w, {written}}}")
    assert (drawn.wait, drawn.title) == (wait, title or f"until {wait.until}")


def test_paths_are_counted() -> None:
    assert picture(HEADER + "- {type: pass, name: ab}\n- {type: pass, name: c}").path_characters == 3
