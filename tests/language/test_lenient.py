"""Strictness: errors that a lenient check reports as warnings, leaving the attribute out."""

import pytest

from flowserver.language.diagnostics import DefinitionRejected, Severity
from flowserver.language.graph import TaskStep, WaitStep
from flowserver.language.parser import parse, parse_stored
from tests.language.definitions import HEADER, LIMITS, diagnostics_of, ids_of

TASK = "- type: task\n  name: a\n  resourceArn: acs:fc:::functions/f\n"
END = "- {type: pass, name: b}\n"


def strict_and_lenient(text: str) -> tuple[list[str], list[str]]:
    """The findings of both checks as `severity[id] hint`; the lenient one accepts the text."""
    lenient = parse(text, LIMITS, lenient=True).warnings
    strict = diagnostics_of(text)
    first, second = ([f"{item.severity}[{item.id}] {item.hint}" for item in found] for found in (strict, lenient))
    return first, second


@pytest.mark.parametrize(
    ("attributes", "found"),
    [
        ("  retri: []\n", ["[unknown-attribute] did you mean `retry`?"]),
        ("  retry: [{errors: [A], maxAttempt: 1}]\n", ["[unknown-attribute] did you mean `maxAttempts`?"]),
        (
            "  catch: [{errors: [A], goto: b, steps: []}]\n",
            [
                "[unknown-attribute] `steps` belongs to a flow, a foreach step, a choice option, "
                "a default option or a branch"
            ],
        ),
        ("  retry:\n", ["[empty-attribute] leave it out, or give it a value"]),
        ("  retry: []\n", ["[empty-attribute] leave it out, or give it a value"]),
        ("  timeoutSeconds: ~\n", ["[empty-attribute] leave it out, or give it a value"]),
        (
            "  retry:\n  ends: true\n",
            ["[empty-attribute] leave it out, or give it a value", "[unknown-attribute] did you mean `end`?"],
        ),
    ],
)
def test_errors_that_a_lenient_check_makes_warnings(attributes: str, found: list[str]) -> None:
    strict, lenient = strict_and_lenient(HEADER + TASK + attributes + END)
    assert strict == [f"error{item}" for item in found]
    assert lenient == [f"warning{item}" for item in found]


def test_attributes_with_lenient_warnings_are_left_out() -> None:
    text = (
        HEADER
        + TASK
        + "  retry: ~\n  end:\n  ends: true\n"
        + END
        + "- {type: wait, name: c, duration: 1, timestamp: }\n"
    )
    task, _, wait = parse(text, LIMITS, lenient=True).flow.root.steps
    assert isinstance(task, TaskStep)
    assert isinstance(wait, WaitStep)
    assert (task.retry, task.end, wait.duration, wait.timestamp) == ((), False, 1, None)


@pytest.mark.parametrize(
    ("steps", "id"),
    [
        ("- {type: pass, name: }\n", "wrong-type"),
        ("- {type: pass}\n", "missing-attribute"),
        ("- {type: wait, name: a, duration: }\n", "exactly-one"),
        ("- {type: pass, name: a, end: 1}\n", "wrong-type"),
        ("- {type: task, name: a, resourceArn: 'acs:fnf:::flow/f', serviceParams: {Inpt: $}}\n", "unknown-parameter"),
        ("- {type: pass, name: a, end: true, end: true}\n", "duplicate-key"),
        ("- {type: choice, name: a, default: {goto: b}}\n", "unknown-goto"),
    ],
)
def test_all_other_errors_stay_errors(steps: str, id: str) -> None:
    with pytest.raises(DefinitionRejected) as caught:
        parse(HEADER + steps, LIMITS, lenient=True)
    assert [item.id for item in caught.value.diagnostics if item.severity is Severity.ERROR] == [id]


def test_stored_definitions_are_read_leniently() -> None:
    text = HEADER + TASK + "  retry:\n  ends: true\n" + END
    assert ids_of(text) == ["empty-attribute", "unknown-attribute"]
    assert len(parse_stored(text).root.steps) == 2
