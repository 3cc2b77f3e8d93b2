"""What the hints of findings propose: they are what a reader tries first."""

import pytest

from flowserver.analysis.proving import prove
from flowserver.base.limits import Limits

HEADER = "version: v1\ntype: flow\ntimeoutSeconds: 3600\nsteps:\n"
FUNCTION = "resourceArn: acs:fc:::services/t/functions/f"


def with_retry(error: str) -> str:
    return f"  - {{type: task, name: a, {FUNCTION}, retry: [{{errors: [{error}], intervalSeconds: 1}}]}}\n"


def hints_in(steps: str) -> list[str | None]:
    return [each.hint for each in prove(HEADER + steps, Limits()).findings]


@pytest.mark.parametrize(
    ("steps", "hint"),
    [
        pytest.param(
            "  - {type: pass, name: a, outputMappings: [{target: reservationId, source: 1}]}\n"
            "  - {type: task, name: b, %s, inputMappings: [{target: id, source: $local.reservationID}]}\n",
            "did you mean `$local.reservationId`?",
            id="misspelt key of $local",
        ),
        pytest.param(
            "  - {type: task, name: a, inputMappings: [{target: amount, source: $input.amount}], %s,\n"
            "     outputMappings: [{target: amount, source: $input.amuont}]}\n",
            "did you mean `$input.amount`?",
            id="misspelt key of the step's input",
        ),
        pytest.param(
            "  - {type: pass, name: a, outputMappings: [{target: order, source: {id: 1}}]}\n"
            "  - {type: task, name: b, %s, inputMappings: [{target: id, source: $local.order.idd}]}\n",
            "did you mean `$local.order.id`?",
            id="misspelt key of an object",
        ),
        pytest.param(
            "  - {type: task, name: a, inputMappings: [{target: amount, source: $input.amount}], %s,\n"
            "     outputMappings: [{target: total, source: $input.total}]}\n",
            "`$local.total` may be meant",
            id="the step's own input instead of its result",
        ),
        pytest.param(
            "  - {type: task, name: a, resourceArn: 'acs:fnf:::flow/clean',\n"
            "     outputMappings: [{target: rows, source: $local.rows}]}\n",
            "this step ends when the flow has started; `pattern: sync` waits for its output",
            id="the output of a flow that was only started",
        ),
        pytest.param(
            "  - type: parallel\n    name: a\n    branches:\n"
            "      - steps: [{type: task, name: b, %s}]\n      - steps: [{type: task, name: c, %s}]\n"
            "    outputMappings: [{target: rows, source: $local.rows}]\n",
            "`$local` is a list here, one item per run: `$local[*].key`",
            id="a key of a list",
        ),
    ],
)
def test_of_data_that_is_not_there(steps: str, hint: str) -> None:
    assert hint in hints_in(steps.replace("%s", FUNCTION))


@pytest.mark.parametrize("name", ["FnF.Timeout", "FC.Timeout", "FC.FunctionTimeout", "FnF.TaskTimedOut", "TaskTimeout"])
def test_of_names_that_time_outs_do_not_have(name: str) -> None:
    (hint,) = hints_in(with_retry(name))
    assert hint is not None
    assert "`FnF.TaskTimeout`" in hint


@pytest.mark.parametrize("name", ["Timeout", "PaymentTimeout", "shop.Timeout", "TimeoutError", "FC.Unknown"])
def test_errors_of_functions_may_be_named_like_time_outs(name: str) -> None:
    assert hints_in(with_retry(name)) == []


def test_a_callback_that_comes_too_late_may_be_asked_for_again() -> None:
    steps = f"""
  - type: task
    name: ask
    {FUNCTION}
    pattern: waitForCallback
    timeoutSeconds: 60
    inputMappings: [{{target: token, source: $context.task.token}}]
    errorMappings: [{{target: why, source: $local.error}}]
    catch: [{{errors: [FnF.TaskTimeout], goto: remind}}]
    end: true
  - {{type: task, name: remind, {FUNCTION}, catch: [{{errors: [Declined], goto: ask}}]}}
  - {{type: choice, name: again, default: {{goto: ask}}}}
"""
    assert [each.id for each in prove(HEADER + steps, Limits()).findings if each.id == "retry-by-goto"] == []
    other = steps.replace("errors: [FnF.TaskTimeout]", "errors: [FnF.ALL]")
    assert [each.id for each in prove(HEADER + other, Limits()).findings if each.id == "retry-by-goto"] != []
