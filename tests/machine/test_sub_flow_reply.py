"""What a step that starts a sub-flow is answered at once."""

from flowserver.machine.sub_flow_reply import reply_to_redrive, reply_to_start


def test_the_answer_is_that_of_start_execution() -> None:
    assert reply_to_start("id", "child", "version: v1", "run", '{"a": 1}', 1_700_000_000_123) == {
        "RequestId": "id",
        "FlowName": "child",
        "FlowDefinition": "version: v1",
        "Name": "run",
        "Input": '{"a": 1}',
        "Output": "",
        "Status": "Running",
        "StartedTime": "2023-11-14T22:13:20.123Z",
        "StoppedTime": "",
    }


def test_a_continued_execution_is_named() -> None:
    told = {"RequestId": "id", "FlowName": "child", "Name": "run", "Status": "Running", "Continued": True}
    assert reply_to_redrive("id", "child", "run") == told
