"""Hints: the correction that a finding suggests."""

import pytest

from tests.language.definitions import HEADER, diagnostics_of


def hints(steps: str) -> list[str | None]:
    return [diagnostic.hint for diagnostic in diagnostics_of(HEADER + steps)]


@pytest.mark.parametrize(
    ("target", "params", "hint"),
    [
        ("resourceArn: 'acs:fnf:::flow/f'", "input: $", "did you mean `Input`?"),
        ("resourceArn: 'acs:fnf:::flow/f'", "Execution: a", "did you mean `ExecutionName`?"),
        ("resourceArn: 'acs:fnf:::flow/f'", "order: $", "a flow gets its `Input`"),
        ("resourceArn: 'acs:fc:::functions/f'", "InvokationType: Async", "did you mean `InvocationType`?"),
        ("resourceArn: 'acs:fc:::functions/f'", "n: 1", "a function gets the step's input: use `inputMappings`"),
        ("resourceArn: 'acs:fc:::functions/f'", "InvocationType: async", "did you mean `Async`?"),
        ("resourceArn: 'acs:fc:::functions/f'", "InvocationType: [Async]", None),
        (
            "resourceArn: 'acs:mns:::/queues/q/messages'",
            "MessageBody: a, DelaySecond: 5",
            "did you mean `DelaySeconds`?",
        ),
        ("resourceArn: 'acs:mns:::/queues/q/messages'", "MessageBody: a, n: 1", "what is sent is the `MessageBody`"),
        (
            "resourceArn: 'acs:mns:::/topics/t/messages'",
            "MessageBody: a, n: 1",
            "what is published is the `MessageBody`",
        ),
    ],
)
def test_parameters(target: str, params: str, hint: str | None) -> None:
    assert hints(f"- {{type: task, name: a, {target}, serviceParams: {{{params}}}}}") == [hint]


@pytest.mark.parametrize(
    ("collection", "hint"),
    [
        (
            "$input.order.ids",
            "write `$.ids`, a path into the step's input, with "
            "`inputMappings: [{target: ids, source: $input.order.ids}]`",
        ),
        ("$input", None),
        ("ids", None),
    ],
)
def test_a_reference_where_a_path_is_expected(collection: str, hint: str | None) -> None:
    iteration = f"iterationMapping: {{collection: {collection}, item: i}}"
    assert hints(f"- {{type: foreach, name: a, {iteration}, steps: [{{type: pass, name: b}}]}}") == [hint]
