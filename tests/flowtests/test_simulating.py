"""Simulations of definitions alone: what they find, and what they do not."""

from pathlib import Path

import pytest

from flowserver.expressions.conditions import compile_condition
from flowserver.flowtests.fault_names import FaultKind
from flowserver.flowtests.properties import Always, AtMostOnce, Compensated
from flowserver.flowtests.simulating import SimulationSettings, simulate
from flowserver.language.diagnostics import Severity
from tests.analysis.test_correct_flows import FLOWS

BUGS = Path(__file__).parents[1] / "analysis" / "seeded_bugs"
FOUND = {
    "branch-always-fails": "succeeds",
    "choice-goes-to-itself": "ends",
    "collection-not-mapped": "own-mistake",
    "compensation-for-one-error": "undone",
    "compensation-lost": "undone",
    "condition-not-mapped": "succeeds",
    "foreach-over-null": "own-mistake",
    "foreach-over-object": "own-mistake",
    "goto-to-itself": "ends",
    "parameter-not-mapped": "own-mistake",
    "retry-by-catch": "done-twice",
    "token-never-passed": "succeeds",
    "token-not-in-message": "succeeds",
    "undo-after-success": "undone-without-need",
    "undo-by-every-option": "undone",
    "wait-for-a-text": "own-mistake",
    "wait-longer-than-flow": "succeeds",
}
"""The seeded bugs that show when a flow runs, each with the property that runs break."""

FAILING = {"C29-fail", "C30-fail-in-branch-propagates"}
"""Flows that are right and never succeed: the warning is true of them."""


@pytest.mark.parametrize("bug", sorted(file.stem for file in BUGS.glob("*.yaml")))
def test_bugs_that_show_at_run_time_are_found(bug: str) -> None:
    found = {each.property for each in simulate((BUGS / f"{bug}.yaml").read_text("utf-8")).failures}
    assert found == ({FOUND[bug]} if bug in FOUND else set())


@pytest.mark.parametrize("name", FLOWS)
def test_nothing_false_is_found(name: str) -> None:
    failures = simulate(FLOWS[name], settings=SimulationSettings(runs=100)).failures
    assert [each.message for each in failures if each.severity is Severity.ERROR] == []
    assert (failures != ()) == (name in FAILING)


def test_a_name_that_collects_itself_is_no_list_of_lists() -> None:
    text = """version: v1
type: flow
steps:
  - type: foreach
    name: Pictures
    iterationMapping: {collection: $.pictures, item: picture}
    steps:
      - {type: task, name: Shrink, resourceArn: 'acs:fc:::services/media/functions/shrink'}
    outputMappings: [{target: small, source: '$local[*].small'}]
  - type: task
    name: Publish
    resourceArn: acs:fc:::services/media/functions/publish
    inputMappings: [{target: pictures, source: $local.small}]
"""
    assert simulate(text).failures == ()


def test_equal_seeds_make_equal_runs() -> None:
    text = FLOWS["examples/saga/flow.yaml"]
    one, same, other = (simulate(text, settings=SimulationSettings(runs=60, seed=seed)) for seed in (1, 1, 2))
    assert (one.statuses, one.faults) == (same.statuses, same.faults)
    assert one.faults != other.faults


def test_the_shortest_run_has_one_fault() -> None:
    (failure,) = simulate((BUGS / "compensation-lost.yaml").read_text("utf-8")).failures
    (fault,) = failure.run.script.faults
    assert (fault.place.path, fault.times) == ("BookCar", 1)
    assert failure.path == "BookFlight"
    assert failure.message.startswith("step BookFlight has succeeded and is not undone: CancelFlight does not run")


TRIP = """version: v1
type: flow
steps:
  - {type: task, name: BookFlight, resourceArn: 'acs:fc:::functions/bookFlight'}
  - type: task
    name: BookHotel
    resourceArn: acs:fc:::functions/bookHotel
    errorMappings: [{target: why, source: $local.error}]
    catch: [{errors: [FnF.ALL], goto: CancelFlight}]
  - type: task
    name: BookCar
    resourceArn: acs:fc:::functions/bookCar
    errorMappings: [{target: why, source: $local.error}]
    catch: [{errors: [FnF.ALL], goto: CancelHotel}]
    end: true
  - {type: task, name: CancelHotel, resourceArn: 'acs:fc:::functions/cancelHotel'}
  - {type: task, name: CancelFlight, resourceArn: 'acs:fc:::functions/cancelFlight'}
  - {type: fail, name: NotBooked, error: NotBooked}
"""


def test_an_undoing_step_that_fails_without_a_retry_keeps_others_from_undoing() -> None:
    (failure,) = simulate(TRIP).failures
    assert (failure.property, failure.severity, failure.path) == ("undone", Severity.WARNING, "BookFlight")
    assert "CancelFlight does not run after CancelHotel has failed" in failure.message
    assert [fault.place.path for fault in failure.run.script.faults] == ["BookCar", "CancelHotel"]
    retried = TRIP.replace("functions/cancelHotel'", "functions/cancelHotel', retry: [{errors: [FnF.ALL]}]")
    assert simulate(retried).failures == ()


REFUNDED = """version: v1
type: flow
steps:
  - {type: task, name: Charge, resourceArn: 'acs:fc:::functions/charge'}
  - type: task
    name: Ship
    resourceArn: acs:fc:::functions/ship
    errorMappings: [{target: why, source: $local.error}]
    catch: [{errors: [FnF.ALL], goto: Refund}]
    end: true
  - type: task
    name: Refund
    resourceArn: acs:fc:::functions/refund
    retry: [{errors: [FnF.ALL], maxAttempts: 10}]
    errorMappings: [{target: why, source: $local.error}]
    catch: [{errors: [FnF.ALL], goto: Tell}]
  - {type: task, name: Tell, resourceArn: 'acs:fc:::functions/tell'}
  - {type: fail, name: NotShipped}
"""


@pytest.mark.parametrize("text", [REFUNDED, TRIP, FLOWS["examples/saga/flow.yaml"]], ids=["refunded", "trip", "saga"])
def test_each_kind_of_fault_meets_each_step(text: str) -> None:
    """Those that handle an error, too: a fault has to lead to them, and to `Tell` eleven of them after it."""
    coverage = simulate(text).coverage
    assert coverage is not None
    assert (coverage.missing, coverage.not_called) == ({}, [])


def test_what_met_no_fault_is_known() -> None:
    coverage = simulate(REFUNDED, settings=SimulationSettings(runs=1)).coverage
    assert coverage is not None
    assert set(coverage.missing) == {"Charge", "Ship"}
    assert coverage.not_called == ["Refund", "Tell"]


def test_a_fault_meets_the_step_that_handles_one() -> None:
    """A drawn run hardly has an error of `Ship`, and eleven of `Refund`."""
    wanted = Always(compile_condition('$.succeeded.Charge == 0 || $.status == "Succeeded" || $.succeeded.Refund == 1'))
    for seed in range(5):
        (failure,) = simulate(REFUNDED, settings=SimulationSettings(seed=seed, properties=(wanted,))).failures
        assert [fault.place.path for fault in failure.run.script.faults][:2] == ["Ship", "Refund"]


AGAIN = """version: v1
type: flow
steps:
  - type: task
    name: Look
    resourceArn: acs:fc:::functions/look
    catch: [{errors: [FnF.ALL], goto: Pause}]
    end: true
  - {type: wait, name: Pause, duration: 60}
  - {type: choice, name: Again, choices: [{condition: "true", goto: Look}]}
"""


def test_a_loop_without_a_bound_shows_when_a_service_is_down_for_good() -> None:
    (failure,) = simulate(AGAIN).failures
    assert (failure.property, failure.severity, failure.path) == ("ends", Severity.WARNING, "Look")
    assert [fault.kind for fault in failure.run.script.faults] == [FaultKind.OUTAGE]
    texts = [each.text for each in failure.story]
    assert texts.count("fault: Look is called, and is down from now on") == 1
    assert texts[-1] == "and so on: there is no end"
    assert simulate(AGAIN, settings=SimulationSettings(faults=frozenset({FaultKind.SERVER_ERROR}))).failures == ()


TWICE = """version: v1
type: flow
steps:
  - type: task
    name: Charge
    resourceArn: acs:fc:::services/pay/functions/charge
    inputMappings: [{target: total, source: $input.total}]
    errorMappings: [{target: why, source: $local.error}]
    catch: [{errors: [FC.Unknown], goto: Again}]
    end: true
  - type: task
    name: Again
    resourceArn: acs:fc:::services/pay/functions/charge
    inputMappings: [{target: total, source: $input.total}]
"""
RIGHT = {
    "the charge is refused": TWICE.replace("FC.Unknown", "Declined"),
    "another input": TWICE.replace("Again\n", "Again\n").replace(
        "source: $input.total}]\n    err", "source: $input.sum}]\n    err"
    ),
    "a key of its own": TWICE.replace("{target: total", "{target: requestId, source: $input.id}, {target: total"),
    "the execution as a key": TWICE.replace(
        "{target: total", "{target: x, source: $context.execution.name}, {target: total"
    ),
    "a step that only looks": TWICE.replace("Charge", "Look").replace("/charge", "/look"),
    "undone before": TWICE.replace("goto: Again", "goto: Refund").replace(
        "  - type: task\n    name: Again",
        "  - {type: task, name: Refund, resourceArn: 'acs:fc:::services/pay/functions/refund'}\n"
        "  - type: task\n    name: Again",
    ),
}


def test_at_most_once_of_the_file_says_it_all() -> None:
    once = SimulationSettings(properties=(AtMostOnce("pay/charge"),))
    assert {each.property for each in simulate(TWICE, settings=once).failures} == {"atMostOnce"}


def test_a_charge_whose_reply_was_lost_is_not_made_again() -> None:
    (failure,) = simulate(TWICE).failures
    assert (failure.property, failure.severity, failure.path) == ("done-twice", Severity.WARNING, "Charge")
    assert "step Again calls the function again, with the same input" in failure.message
    assert [(fault.place.path, fault.detail) for fault in failure.run.script.faults] == [("Charge", "FC.Unknown")]


@pytest.mark.parametrize("text", RIGHT.values(), ids=RIGHT)
def test_a_charge_may_be_made_again(text: str) -> None:
    assert [each.message for each in simulate(text).failures if each.property == "done-twice"] == []


def test_work_that_is_not_undone_is_found_in_each_way() -> None:
    settings = SimulationSettings(properties=(Compensated("BookFlight", "CancelFlight"),))
    ways = {failure.message.rpartition(": ")[2] for failure in simulate(TRIP, settings=settings).failures}
    assert ways == {"CancelFlight does not run", "CancelFlight does not succeed"}


def errors_in(text: str) -> list[str]:
    return [each.message for each in simulate(text).failures if each.severity is Severity.ERROR]


def test_texts_that_are_compared_with_each_other_can_be_equal() -> None:
    """A loop that waits until `version` is `wanted` has an end."""
    text = """version: v1
type: flow
inputMappings: [{target: wanted, source: $input.wanted}]
steps:
  - {type: wait, name: Pause, duration: 10}
  - type: task
    name: Look
    resourceArn: acs:fc:::services/s/functions/look
    inputMappings: []
    outputMappings: [{target: version, source: $local.version}]
  - type: choice
    name: There
    choices: [{condition: $.version != $.wanted, goto: Pause}]
    default: {goto: Done}
  - {type: succeed, name: Done}
"""
    assert errors_in(text) == []


def test_a_result_has_what_is_read_before_another_step_puts_it_out() -> None:
    """`Search` returns the first `items`, and `Pack` puts out others later."""
    text = """version: v1
type: flow
inputMappings: [{target: query, source: $input.query}]
steps:
  - type: task
    name: Search
    resourceArn: acs:fc:::services/s/functions/search
  - type: foreach
    name: Print
    iterationMapping: {collection: $.items, item: item}
    outputMappings: []
    steps: [{type: pass, name: Each}]
  - type: task
    name: Pack
    resourceArn: acs:fc:::services/s/functions/pack
    outputMappings: [{target: items, source: $local.parcels}]
  - type: foreach
    name: Ship
    iterationMapping: {collection: $.items, item: item}
    outputMappings: []
    steps: [{type: pass, name: Parcel}]
"""
    assert errors_in(text) == []


def test_a_name_for_a_list_and_for_a_number_makes_no_error() -> None:
    """`order.items` is a list and `page.items` has `seconds`: no made-up `items` is both."""
    text = """version: v1
type: flow
inputMappings:
  - {target: order, source: $input.order}
  - {target: page, source: $input.page}
steps:
  - type: foreach
    name: Pack
    iterationMapping: {collection: $.order.items, item: item}
    outputMappings: []
    steps: [{type: pass, name: Each}]
  - {type: wait, name: Pause, duration: $.page.items.seconds}
"""
    assert errors_in(text) == []


GUARDED = """version: v1
type: flow
steps:
  - type: choice
    name: Remind
    choices:
      - {condition: $.until == "never", goto: Done}
    default: {goto: Wait}
  - {type: wait, name: Wait, timestamp: $.until}
  - {type: succeed, name: Done}
"""

TWO_OBJECTS = {
    "an instant and seconds": """
  - {type: wait, name: Hold, timestamp: $.hold.due}
  - {type: wait, name: Pause, duration: $.reminder.due}
""",
    "a word and seconds": """
  - type: choice
    name: Kind
    choices:
      - {condition: $.parcel.delay == "express", goto: Send}
    default: {goto: Slow}
  - {type: wait, name: Slow, duration: $.message.delay}
  - {type: succeed, name: Send}
""",
    "a list and seconds": """
  - type: foreach
    name: Items
    iterationMapping: {collection: $.order.items, item: item}
    steps: [{type: pass, name: Pack}]
    outputMappings: []
  - {type: wait, name: Pause, duration: $.page.items}
""",
    "a list and seconds in copies": """
  - type: foreach
    name: Items
    inputMappings: [{target: bought, source: $input.order}]
    iterationMapping: {collection: $.bought.items, item: item}
    steps: [{type: pass, name: Pack}]
    outputMappings: []
  - {type: wait, name: Pause, duration: $.page.items}
""",
}


@pytest.mark.parametrize("steps", TWO_OBJECTS.values(), ids=TWO_OBJECTS.keys())
def test_a_name_is_for_different_things_in_two_objects(steps: str) -> None:
    simulation = simulate(f"version: v1\ntype: flow\nsteps:{steps}")
    assert [each.message for each in simulation.failures] == []
    assert simulation.statuses["Succeeded"] == simulation.runs


def test_a_word_may_stand_for_no_instant() -> None:
    """The step that needs an instant is not entered with the word; without the condition it would be."""
    simulation = simulate(GUARDED)
    assert [each.message for each in simulation.failures] == []
    [failure] = simulate(GUARDED.replace('"never", goto: Done', '"never", goto: Wait')).failures
    assert 'timestamp: $.until is not an RFC 3339 instant: "never"' in failure.message
    assert failure.severity is Severity.WARNING
