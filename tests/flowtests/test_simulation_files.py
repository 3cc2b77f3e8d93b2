"""Simulations of test files: their mocks, inputs, settings and properties; the shortest runs, stories, and tests."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from flowserver.base.durations import shown_duration
from flowserver.base.limits import Limits
from flowserver.flowtests.cases import Crash
from flowserver.flowtests.fault_names import FaultKind
from flowserver.flowtests.loading import Loader
from flowserver.flowtests.outcomes import Rules, run_case
from flowserver.flowtests.simulating import Failure, Simulation, SimulationSettings, simulate_file
from flowserver.flowtests.simulating.faults import EACH_TIME, Fault, Place, faults_of
from flowserver.flowtests.simulating.recorded_case import NotRecordable, recorded_case
from flowserver.flowtests.simulating.runs import Script, SimulatedRun, Simulator
from flowserver.flowtests.simulating.shrinking import shortest
from flowserver.flowtests.simulating.simulation import repeat_run

LIMITS = Limits()
ORDER = """
  - type: task
    name: Charge
    resourceArn: acs:fc:::services/pay/functions/charge
    retry: [{errors: [FC.Unknown, FC.InternalServerError], intervalSeconds: 1, maxAttempts: 2}]
    outputMappings: [{target: receipt, source: $local.id}]
  - type: task
    name: Ship
    resourceArn: acs:fc:::services/ship/functions/ship
    inputMappings: [{target: receipt, source: $local.receipt}]
    errorMappings: [{target: why, source: $local.error}]
    catch: [{errors: [SoldOut], goto: Refund}]
  - {type: succeed, name: Done}
  - type: task
    name: Refund
    resourceArn: acs:fc:::services/pay/functions/refund
    retry: [{errors: [FnF.ALL]}]
  - {type: fail, name: NotShipped}
"""
SAFE = ORDER.replace("[SoldOut]", "[FnF.ALL]")
LOST = "sim: {compensated: {Charge: Refund}}"
APPROVE = """
  - type: task
    name: Ask
    resourceArn: acs:mns:::/queues/asks/messages
    pattern: waitForCallback
    timeoutSeconds: 3600
    retry: [{errors: [FnF.TaskTimeout], maxAttempts: 1}]
    inputMappings: [{target: token, source: $context.task.token}, {target: amount, source: $input.amount}]
    serviceParams: {MessageBody: $}
"""


@pytest.fixture
def simulated(tmp_path: Path) -> Callable[..., Simulation]:
    """Simulate these steps with the text of a test file."""

    def run(
        steps: str,
        tests: str,
        settings: SimulationSettings | None = None,
        limits: Limits = LIMITS,
        **others: str,
    ) -> Simulation:
        for name, text in {"flow": steps, **others}.items():
            (tmp_path / f"{name}.yaml").write_text(f"version: v1\ntype: flow\nsteps:\n{text}")
        file = Loader(LIMITS).load(tmp_path / "flow.flowtest.yaml", f"flow: flow.yaml\n{tests}\n")
        return simulate_file(file, Rules(limits), settings)

    return run


def only(simulation: Simulation) -> Failure:
    (failure,) = simulation.failures
    return failure


def story(failure: Failure) -> list[str]:
    return [f"{shown_duration(each.after_ms)} {each.line} {each.text}" for each in failure.story]


def test_properties_of_the_file_are_checked_in_every_run(simulated):
    assert simulated(SAFE, LOST).failures == ()
    failure = only(simulated(ORDER, LOST))
    assert (failure.property, str(failure.severity), failure.path) == ("compensated", "error", "Charge")
    assert failure.span.line == 2


def test_the_shortest_run_has_a_story(simulated):
    failure = only(simulated(ORDER, LOST))
    (fault,) = failure.run.script.faults
    assert (fault.place.path, fault.times) == ("Ship", 1)
    error = fault.detail
    assert story(failure) == [
        "0s 0 the execution starts with {}",
        '0s 5 Charge returns {"id":"id-1"}',
        f"0s 10 Ship fails with {error} (a fault)",
        f"0s 0 the execution fails with {error}",
    ]


def test_input_and_replies_are_those_of_the_file(simulated):
    tests = """
input: {amount: 5}
functions: {charge: [{return: {id: r1}}, {return: {id: r2}}]}
sim: {runs: 30, ignore: [undone], always: ['$.input.amount == 5', '$.calls.Ship == 0']}
"""
    failure = only(simulated(ORDER, tests))
    assert story(failure)[:2] == ['0s 0 the execution starts with {"amount":5}', '0s 5 Charge returns {"id":"r1"}']


def test_the_replies_of_mocks_begin_again(simulated):
    loop = """
  - {type: task, name: Look, resourceArn: 'acs:fc:::functions/look'}
  - type: choice
    name: Ready
    choices: [{condition: '$.state == "done"', goto: Done}]
    default: {goto: Look}
  - {type: succeed, name: Done}
"""
    replies = "functions: {look: [{return: {state: busy}, times: 2}, {return: {state: done}}]}"
    simulation = simulated(loop, f"{replies}\nsim: {{runs: 5, faults: [slow], always: ['$.calls.Look == 3']}}")
    assert (simulation.failures, simulation.statuses) == ((), {"Succeeded": 5})


def test_inputs_of_tests_are_examples(simulated):
    tests = """
tests: [{name: a, input: {n: 1}}, {name: b, input: {n: 2}}]
sim: {runs: 40, always: ['$.input.n == 1']}
"""
    failure = only(simulated("  - {type: pass, name: p}", tests))
    assert failure.run.case.input in ({"n": 2}, {})
    assert simulated("  - {type: pass, name: p}", tests.replace("== 1", "> 0")).failures == ()


def test_settings(simulated):
    simulation = simulated(ORDER, "sim: {runs: 25, seed: 7, faults: [throttled, slow]}")
    assert (simulation.runs, simulation.seed) == (25, 7)
    assert set(simulation.faults) <= {"throttled", "slow"}
    none = simulated(ORDER, "sim: {runs: 25, seed: 7}", SimulationSettings(runs=3))
    assert (none.runs, none.seed) == (3, 1)


def test_properties_of_every_flow_can_be_ignored(simulated):
    endless = "  - {type: fail, name: Never}"
    assert only(simulated(endless, "sim: {runs: 3}")).property == "succeeds"
    assert simulated(endless, "sim: {runs: 3, ignore: [succeeds]}").failures == ()


def test_sizes_of_collections(simulated):
    steps = """
  - type: foreach
    name: Each
    iterationMapping: {collection: $.items, item: it}
    steps: [{type: pass, name: p}]
"""
    sizes = simulated(steps, "sim: {runs: 60, collections: [5, 7], always: ['$.entered.p == 2 || $.entered.p >= 5']}")
    assert sizes.failures == ()
    large = only(simulated(steps, "sim: {runs: 80, always: ['$.entered.p < 100']}"))
    assert len(large.run.case.input["items"]) == 100


def test_a_drawn_input_is_made_small(simulated):
    steps = "  - {type: pass, name: p, inputMappings: [{target: x, source: '$input.items[*].id'}]}\n"
    lists = "{type: array, items: {type: integer}, examples: [[1, 2, 3, 4]]}"
    schema = f"{{type: object, required: [items], properties: {{items: {lists}, other: {lists}}}}}"
    tests = f"sim: {{runs: 1, inputSchema: {schema}, always: ['!(3 in $.input.items)']}}"
    assert only(simulated(steps, tests)).run.case.input == {"items": [3]}


def test_only_the_data_that_matters_is_not_plain(simulated):
    steps = """
  - {type: task, name: One, resourceArn: 'acs:fc:::functions/one'}
  - {type: task, name: Two, resourceArn: 'acs:fc:::functions/two', outputMappings: [{target: b, source: $local.b}]}
  - type: choice
    name: c
    choices: [{condition: '$.b == "x" && $.a < 5', goto: Good}, {condition: '$.b != "y"', goto: Good}]
  - {type: fail, name: Bad, error: Bad}
  - {type: succeed, name: Good}
"""
    failure = only(simulated(steps, """sim: {always: ['$.error != "Bad"']}"""))
    assert failure.run.script.faults == ()
    assert story(failure)[1:3] == ['0s 5 One returns {"a":4}', '0s 6 Two returns {"b":"y"}']


def test_a_run_can_be_repeated(simulated):
    simulation = simulated(ORDER, LOST)
    failure = only(simulation)
    again = repeat_run(simulation.file, Rules(LIMITS), simulation.file.simulation, failure.first)
    assert only(again).property == "compensated"
    assert again.runs == 1
    assert again.story[-1].text.startswith("the execution fails with")


def outcome_of_record(simulation: Simulation, failure: Failure) -> list[str]:
    """What is wrong with the recorded test, which is run as a file beside the definition."""
    folder = simulation.file.file.parent
    test = recorded_case(simulation, failure, folder)
    text = yaml.safe_dump({"flow": "flow.yaml", "tests": [test]}, sort_keys=False)
    file = Loader(LIMITS).load(folder / "recorded.flowtest.yaml", text)
    (outcome,) = (run_case(file, case, Rules(LIMITS)) for case in file.cases)
    assert outcome.warnings == ()
    return [each.message for each in outcome.failures]


def test_a_recorded_test_fails_until_the_flow_is_right(simulated):
    simulation = simulated(ORDER, LOST)
    failure = only(simulation)
    assert outcome_of_record(simulation, failure) == [failure.message]
    simulation.file.file.with_name("flow.yaml").write_text(f"version: v1\ntype: flow\nsteps:\n{SAFE}")
    assert outcome_of_record(simulation, failure) == []


@pytest.mark.parametrize(
    "claim",
    [
        "$.calls.Ask == 1",
        "$.tookSeconds < 3600",
        "!($.tookSeconds == 3601 && $.calls.Ask == 2)",
        '$.status == "Succeeded"',
        "!($.tookSeconds > 7000)",
    ],
)
@pytest.mark.parametrize("fault", ["late-callback", "crash-at-commit", "missing-callback", "failed-callback", "5xx"])
def test_recorded_tests_repeat_their_runs(simulated, claim, fault):
    simulation = simulated(APPROVE, f"sim: {{faults: [{fault}], always: ['{claim}']}}")
    for failure in simulation.errors:
        assert outcome_of_record(simulation, failure) == [failure.message]


def test_recorded_tests_have_duplicates_and_messages(simulated):
    simulation = simulated(APPROVE, "sim: {faults: [duplicate-callback], always: ['$.calls.Ask == 0']}")
    failure = only(simulation)
    assert recorded_case(simulation, failure, Path()) == {
        "name": "always: run 0 of seed 1",
        "input": {},
        "callbacks": {"Ask": [{"succeed": {}}]},
        "expect": {"status": "Any", "always": ["$.calls.Ask == 0"]},
    }


def test_recorded_tests_run_sub_flows(simulated):
    steps = "  - {type: task, name: Child, resourceArn: 'acs:fnf:::flow/child', pattern: sync}\n"
    child = "  - {type: task, name: Work, resourceArn: 'acs:fc:::functions/work'}\n"
    sim = "{faults: [crash-at-commit], atMostOnce: [Work], always: ['$.calls.Work < 2']}"
    tests = f"flows: {{child: {{real: child.yaml}}}}\nsim: {sim}"
    simulation = simulated(steps, tests, child=child)
    failure = only(simulation)
    assert outcome_of_record(simulation, failure) == [failure.message]
    test = recorded_case(simulation, failure, simulation.file.file.parent)
    assert test["steps"] == {
        "Child": {"real": "child.yaml"},
        "Work": [{"return": {}, "crash": "after"}, {"return": {}}],
    }


def test_what_is_not_recorded(simulated):
    steps = "  - {type: task, name: Child, resourceArn: 'acs:fnf:::flow/child', pattern: sync}\n"
    tests = "flows: {child: {real: flow.yaml}}\nsim: {runs: 1, always: ['$.calls.Child == 0']}"
    child = "  - {type: task, name: Child, resourceArn: 'acs:fc:::functions/work'}\n"
    simulation = simulated(steps, tests.replace("flow.yaml", "child.yaml"), child=child)
    with pytest.raises(NotRecordable, match="one path"):
        recorded_case(simulation, only(simulation), Path())


def test_a_long_story_has_its_begin_and_its_end(simulated):
    steps = """
  - type: foreach
    name: Each
    iterationMapping: {collection: $.items, item: it}
    steps: [{type: task, name: Send, resourceArn: 'acs:fc:::functions/send'}]
"""
    failure = only(simulated(steps, "sim: {collections: [60], always: ['$.calls.Send < 60']}"))
    texts = [each.text for each in failure.story]
    assert len(texts) < 40
    assert texts[25] == "… 29 more …"
    assert texts[-1] == "the execution succeeds with {}"


def test_a_run_that_is_too_long_to_follow_breaks_nothing(simulated):
    steps = """
  - type: foreach
    name: Each
    iterationMapping: {collection: $.items, item: it}
    steps: [{type: pass, name: p}, {type: pass, name: q}]
"""
    tests = "sim: {runs: 30, collections: [90, 1], always: ['$.entered.p < 3']}"
    simulation = simulated(steps, tests, limits=replace(LIMITS, flow_test_events_max=200))
    assert simulation.cut_short > 0
    assert simulation.failures == ()
    assert simulation.statuses["Succeeded"] == 30 - simulation.cut_short


@pytest.mark.parametrize(
    ("timeout", "seconds", "properties"),
    [("", 10, ["ends"]), ("", 0, ["ends"]), ("timeoutSeconds: 86400", 0, ["ends"]), ("timeoutSeconds: 86400", 10, [])],
)
def test_a_loop_that_the_time_out_ends_has_an_end(simulated, timeout, seconds, properties):
    steps = f"""
  - {{type: wait, name: Pause, duration: {seconds}}}
  - type: task
    name: Ask
    resourceArn: acs:fc:::functions/ask
    outputMappings: [{{target: state, source: $local.state}}]
  - type: choice
    name: Again
    choices: [{{condition: '$.state == "pending"', goto: Pause}}]
    default: {{goto: Done}}
  - {{type: succeed, name: Done}}
{timeout}
"""
    simulation = simulated(steps, "functions: {ask: {return: {state: pending}}}\nsim: {runs: 3, faults: [slow]}")
    assert [each.property for each in simulation.failures] == properties
    assert (simulation.cut_short > 0) is (properties == [])


def test_runs_that_are_too_long_do_not_hide_that_no_other_succeeds(simulated):
    steps = """
  - type: foreach
    name: Each
    iterationMapping: {collection: $.items, item: it}
    steps: [{type: pass, name: p}, {type: pass, name: q}]
  - {type: fail, name: Never}
"""
    limits = replace(LIMITS, flow_test_events_max=200)
    simulation = simulated(steps, "sim: {runs: 30, collections: [90, 1]}", limits=limits)
    assert simulation.cut_short > 0
    failure = only(simulation)
    assert (failure.property, failure.count) == ("succeeds", 30 - simulation.cut_short)


def test_many_broken_properties_take_little_more_time_than_one(simulated, monkeypatch):
    task = "  - {{type: task, name: {}, resourceArn: 'acs:fc:::functions/work'{}}}\n"
    names = [f"Thing{number}x" for number in range(50)]
    steps = "".join(task.format(f"Book{name}", "") for name in names)
    steps += task.format("Try", f", catch: [{{errors: [Other], goto: Cancel{names[0]}}}]")
    steps += "  - {type: fail, name: Always, error: E}\n" + "".join(task.format(f"Cancel{name}", "") for name in names)
    made: list[Script] = []
    run = Simulator.run

    def noted(self: Simulator, script: Script, *more: Any) -> Any:
        made.append(script)
        return run(self, script, *more)

    monkeypatch.setattr(Simulator, "run", noted)
    simulation = simulated(steps, "sim: {runs: 3}")
    assert [each.property for each in simulation.failures] == ["undone"] * 50
    assert len(made) < 20
    assert len({each.story for each in simulation.failures}) == 1


def test_a_large_flow_gets_fewer_runs(simulated):
    steps = "".join(f"  - {{type: task, name: t{n}, resourceArn: 'acs:fc:::functions/f{n}'}}\n" for n in range(400))
    simulation = simulated(steps, "sim: {ignore: []}")
    assert 0 < simulation.runs < 100
    assert simulation.failures == ()


BOTH = """
  - type: parallel
    name: Both
    branches:
      - steps: [{type: task, name: A, resourceArn: 'acs:fc:::functions/a', outputMappings: [%(a)s]%(after_a)s}]
      - steps: [{type: task, name: B, resourceArn: 'acs:fc:::functions/b', outputMappings: [%(b)s]%(after_b)s}]
    outputMappings: [{target: b, source: '$local[0].a'}, {target: a, source: '$local[1].b'}]
"""
MAPPED = {name: f"{{target: {name}, source: $local.id}}" for name in ("a", "b")}
GOES_ON = ", catch: [{errors: [FnF.ALL], goto: end%s}]}, {type: pass, name: end%s"
SUCCEEDS = "always: ['$.status == \"Succeeded\"']"
TEXTS = "outputSchema: {properties: {b: {type: string}, a: {type: string}}}"


@pytest.mark.parametrize(
    ("steps", "property_"),
    [
        (BOTH % {**MAPPED, "after_a": "", "after_b": ""}, SUCCEEDS),
        (BOTH % {**MAPPED, "after_a": GOES_ON % ("A", "A"), "after_b": GOES_ON % ("B", "B")}, TEXTS),
    ],
    ids=["another step fails", "another member is missing"],
)
def test_a_shorter_run_has_the_same_mistake(simulated, steps: str, property_: str) -> None:
    """Both calls fail, and without the fault of either the property is broken, too, but by the other one."""
    outputs = "functions: {a: [{return: {id: x}}], b: [{return: {id: y}}]}"
    file = simulated(steps, f"{outputs}\nsim: {{runs: 1, faults: [5xx], {property_}}}").file
    assert file.simulation is not None
    [judged] = file.simulation.properties
    simulator = Simulator(file, Rules(LIMITS), file.simulation)
    answers = simulator.run(Script()).calls.answers
    faults = tuple(next(iter(faults_of(ordered, place, file.simulation.faults))) for ordered, place, _ in answers)
    run = simulator.run(Script(faults))
    broken = judged.broken_by(run.record)
    assert broken is not None
    shorter, its = shortest(simulator, run, judged, broken)
    assert (len(run.calls.faults), len(shorter.calls.faults)) == (2, 1)
    assert (its.path, its.kind or its.message) == (broken.path, broken.kind or broken.message)
    assert broken.message.startswith(its.message), "the longer run can have further mistakes"
    assert shorter.record.execution.failed_step == run.record.execution.failed_step


SHIPPED = """
  - type: task
    name: Charge
    resourceArn: acs:fc:::functions/charge
    timeoutSeconds: 30
    retry: [{errors: [FnF.TaskTimeout, FC.ResourceThrottled], intervalSeconds: 2, maxAttempts: 2}]
    errorMappings: [{target: why, source: $local.error}]
    catch: [{errors: [FnF.ALL], goto: Failed}]
    end: true
  - {type: fail, name: Failed, error: NotShipped}
"""
NEVER_FAILS = "sim: {always: ['$.status == \"Succeeded\"']}"


def shortened(tmp_path: Path, faults: tuple[Fault, ...], tests: str = NEVER_FAILS) -> SimulatedRun:
    (tmp_path / "flow.yaml").write_text(f"version: v1\ntype: flow\nsteps:\n{SHIPPED}")
    file = Loader(LIMITS).load(tmp_path / "flow.flowtest.yaml", f"flow: flow.yaml\n{tests}\n")
    assert file.simulation is not None
    simulator = Simulator(file, Rules(LIMITS), file.simulation)
    (wanted,) = file.simulation.properties
    run = simulator.run(Script(faults))
    broken = wanted.broken_by(run.record)
    assert broken is not None
    return shortest(simulator, run, wanted, broken)[0]


def test_a_plain_error_is_shorter_than_time_outs(tmp_path: Path) -> None:
    run = shortened(tmp_path, (Fault(FaultKind.TIMEOUT, Place("", "Charge", 1, 1), "", EACH_TIME),))
    (fault,) = run.script.faults
    assert (fault.kind, fault.times, run.record.took_ms) == (FaultKind.UNEXPECTED, 1, 0)


def test_a_crash_before_the_call_that_fails_is_left_out(tmp_path: Path) -> None:
    crash = Fault(FaultKind.CRASH, Place("", "Charge", 1, 1), Crash.AFTER)
    error = Fault(FaultKind.UNEXPECTED, Place("", "Charge", 1, 2), "UnexpectedError")
    run = shortened(tmp_path, (crash, error))
    assert run.script.faults == (replace(error, place=Place("", "Charge", 1, 1)),)


def test_the_input_of_the_file_stays(tmp_path: Path) -> None:
    tests = f"input: {{order: 4711, lines: [1, 2]}}\n{NEVER_FAILS}"
    error = Fault(FaultKind.UNEXPECTED, Place("", "Charge", 1, 1), "UnexpectedError")
    assert shortened(tmp_path, (error,), tests).case.input == {"order": 4711, "lines": [1, 2]}
