"""What each fault of a simulation does to a run."""

from pathlib import Path

import pytest

from flowserver.base.limits import Limits
from flowserver.flowtests.cases import Crash, Source
from flowserver.flowtests.fault_names import FAULTS, FaultKind
from flowserver.flowtests.outcomes import Rules
from flowserver.flowtests.simulating.faults import EACH_TIME, Fault, Place, faults_of
from flowserver.flowtests.simulating.runs import Script, SimulatedRun, Simulator
from flowserver.flowtests.simulating.simulation import file_of
from flowserver.flowtests.simulation_settings import SimulationSettings
from flowserver.language.parser import parse

STEPS = """
  - type: task
    name: Charge
    resourceArn: acs:fc:::services/pay/functions/charge
    timeoutSeconds: 60
    retry: [{errors: [Busy, FnF.TaskTimeout], intervalSeconds: 1, maxAttempts: 2}]
    catch: [{errors: [Declined], goto: Refused}]
    end: true
  - {type: fail, name: Refused, error: NotPaid}
"""
APPROVE = """
  - type: task
    name: Charge
    resourceArn: acs:fc:::services/ask/functions/send
    pattern: waitForCallback
    timeoutSeconds: 3600
    inputMappings: [{target: token, source: $context.task.token}]
    retry: [{errors: [Later], maxAttempts: 1}]
  - {type: wait, name: Rest, duration: 3600}
"""
JOB = """
  - type: task
    name: Charge
    resourceArn: acs:fc:::services/pay/functions/charge
    pattern: sync
    timeoutSeconds: 60
    serviceParams: {InvocationType: Async}
"""
CHILD = """
  - {type: task, name: Charge, resourceArn: 'acs:fnf:::flow/child', pattern: sync}
"""
QUEUE = """
  - {type: task, name: Charge, resourceArn: 'acs:mns:::/queues/q/messages', serviceParams: {MessageBody: $}}
"""
ACTION = """
  - {type: task, name: Charge, action: 'ocr:Read'}
"""
CHARGE = Place("", "Charge", 1, 1)


def simulator_of(steps: str) -> Simulator:
    text = f"version: v1\ntype: flow\nsteps:\n{steps}"
    source = Source(Path("flow.yaml"), text, parse(text, Limits()).flow)
    return Simulator(file_of(source), Rules(Limits()), SimulationSettings())


def run_with(steps: str, *faults: Fault) -> SimulatedRun:
    return simulator_of(steps).run(Script(faults))


def end(run: SimulatedRun) -> tuple[str, int, int]:
    """The error or the status, the calls, and the virtual time in seconds, cut."""
    execution = run.record.execution
    return execution.error or str(execution.status), len(run.record.calls), run.record.took_ms // 1000


@pytest.mark.parametrize(
    ("steps", "fault", "expected"),
    [
        (STEPS, Fault(FaultKind.ERROR, CHARGE, "Declined"), ("NotPaid", 1, 0)),
        (STEPS, Fault(FaultKind.ERROR, CHARGE, "Busy"), ("Succeeded", 2, 1)),
        (STEPS, Fault(FaultKind.ERROR, CHARGE, "Busy", EACH_TIME), ("Busy", 3, 3)),
        (STEPS, Fault(FaultKind.ERROR, CHARGE, "Busy", 2), ("Succeeded", 3, 3)),
        (STEPS, Fault(FaultKind.UNEXPECTED, CHARGE, "UnexpectedError"), ("UnexpectedError", 1, 0)),
        (STEPS, Fault(FaultKind.SERVER_ERROR, CHARGE, "FC.Unknown"), ("FC.Unknown", 1, 0)),
        (STEPS, Fault(FaultKind.THROTTLED, CHARGE, "FC.ResourceThrottled"), ("FC.ResourceThrottled", 1, 0)),
        (STEPS, Fault(FaultKind.INVALID, CHARGE, "FnF.InvalidLocal"), ("FnF.InvalidLocal", 1, 0)),
        (STEPS, Fault(FaultKind.TIMEOUT, CHARGE), ("Succeeded", 2, 61)),
        (STEPS, Fault(FaultKind.TIMEOUT, CHARGE, "", EACH_TIME), ("FnF.TaskTimeout", 3, 183)),
        (STEPS, Fault(FaultKind.SLOW, CHARGE), ("Succeeded", 1, 59)),
        (STEPS.replace("    timeoutSeconds: 60\n", ""), Fault(FaultKind.SLOW, CHARGE), ("Succeeded", 1, 600)),
        (STEPS, Fault(FaultKind.LATE, CHARGE), ("Succeeded", 2, 61)),
        (STEPS, Fault(FaultKind.CRASH, CHARGE, Crash.BEFORE), ("Succeeded", 1, 0)),
        (STEPS, Fault(FaultKind.CRASH, CHARGE, Crash.AFTER), ("Succeeded", 2, 0)),
        (APPROVE, Fault(FaultKind.FAILED_CALLBACK, CHARGE, "Rejected"), ("Rejected", 1, 0)),
        (APPROVE, Fault(FaultKind.FAILED_CALLBACK, CHARGE, "Later"), ("Succeeded", 2, 3601)),
        (APPROVE, Fault(FaultKind.MISSING_CALLBACK, CHARGE), ("FnF.TaskTimeout", 1, 3600)),
        (APPROVE, Fault(FaultKind.EARLY_CALLBACK, CHARGE), ("Succeeded", 1, 3600)),
        (APPROVE, Fault(FaultKind.LATE_CALLBACK, CHARGE), ("FnF.TaskTimeout", 1, 3600)),
        (APPROVE, Fault(FaultKind.DUPLICATE_CALLBACK, CHARGE), ("Succeeded", 1, 3600)),
        (APPROVE, Fault(FaultKind.TIMEOUT, CHARGE), ("FnF.TaskTimeout", 1, 3600)),
        (APPROVE, Fault(FaultKind.SERVER_ERROR, CHARGE, "FC.Unknown"), ("FC.Unknown", 1, 0)),
        (JOB, Fault(FaultKind.UNEXPECTED, CHARGE, "UnexpectedError"), ("UnexpectedError", 1, 0)),
        (JOB, Fault(FaultKind.TIMEOUT, CHARGE), ("FnF.TaskTimeout", 1, 60)),
        (JOB, Fault(FaultKind.SLOW, CHARGE), ("Succeeded", 1, 59)),
        (JOB, Fault(FaultKind.CRASH, CHARGE, Crash.AFTER), ("Succeeded", 1, 0)),
        (CHILD, Fault(FaultKind.UNEXPECTED, CHARGE, "FnF.Failed"), ("FnF.Failed", 1, 0)),
        (QUEUE, Fault(FaultKind.SERVER_ERROR, CHARGE, "MNS.BrokerUnavailable"), ("MNS.BrokerUnavailable", 1, 0)),
        (ACTION, Fault(FaultKind.SERVER_ERROR, CHARGE, "ocr.InternalError"), ("ocr.InternalError", 1, 0)),
    ],
)
def test_faults(steps, fault, expected):
    run = run_with(steps, fault)
    assert end(run) == expected
    assert run.calls.faults


@pytest.mark.parametrize("steps", [STEPS, APPROVE, JOB, CHILD, QUEUE, ACTION])
def test_every_fault_that_can_meet_a_call_makes_a_run_that_ends(steps):
    simulator = simulator_of(steps)
    ((ordered, place, _), *_) = simulator.run(Script()).calls.answers
    faults = list(faults_of(ordered, place, frozenset(FaultKind)))
    assert len(faults) >= 3
    for fault in faults:
        run = simulator.run(Script((fault,)))
        assert run.calls.faults[0] == fault
        assert not run.record.execution.is_running


def test_each_kind_of_calls_has_its_faults():
    def kinds(steps: str) -> set[FaultKind]:
        ((ordered, place, _), *_) = simulator_of(steps).run(Script()).calls.answers
        return {fault.kind for fault in faults_of(ordered, place, frozenset(FaultKind))}

    callbacks = {each for each in FaultKind if "callback" in each}
    data = {FaultKind.EMPTY_COLLECTION, FaultKind.LARGE_COLLECTION}
    assert kinds(STEPS) == set(FaultKind) - callbacks - data - {FaultKind.OUTAGE}
    assert kinds(APPROVE) >= callbacks
    assert kinds(QUEUE) == {FaultKind.SERVER_ERROR, FaultKind.SLOW, FaultKind.CRASH}
    assert FaultKind.TIMEOUT not in kinds(CHILD)
    assert set(FAULTS) == set(FaultKind)


def test_only_chosen_faults_are_drawn():
    ((ordered, place, _), *_) = simulator_of(STEPS).run(Script()).calls.answers
    assert {fault.kind for fault in faults_of(ordered, place, frozenset({FaultKind.SLOW}))} == {FaultKind.SLOW}


def test_a_fault_meets_its_entry_alone():
    again = STEPS.replace("goto: Refused", "goto: Charge")
    once = Fault(FaultKind.ERROR, CHARGE, "Declined", EACH_TIME)
    assert end(run_with(again, once)) == ("Succeeded", 2, 0)
    second = Fault(FaultKind.ERROR, Place("", "Charge", 2, 1), "Busy")
    assert end(run_with(again, once, second)) == ("Succeeded", 3, 1)


def test_sub_flows_that_run_have_faults_of_their_own(tmp_path, run_tests):
    child = "\n  - {type: task, name: Work, resourceArn: 'acs:fc:::functions/work'}\n"
    (outcome,) = run_tests(
        CHILD, "tests: [{name: a, flows: {child: {real: child.yaml}}, steps: {Work: {}}}]", child=child
    )
    assert outcome.passed
    file = outcome.file
    shared = type(file)(file.file, file.text, file.source, file.flow_name, file.cases[0].mocks, ())
    simulator = Simulator(shared, Rules(Limits()), SimulationSettings())
    plain = simulator.run(Script())
    places = [place for _, place, _ in plain.calls.answers]
    assert [place.path for place in places] == ["Charge", "Work"]
    failed = simulator.run(Script((Fault(FaultKind.UNEXPECTED, places[1], "UnexpectedError"),)))
    assert end(failed) == ("UnexpectedError", 2, 0)
