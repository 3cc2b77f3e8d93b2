"""With a setting of the flow a step whose failure is not caught waits for a redrive, and the execution continues."""

import pytest

from flowserver.base.json_values import load_json
from flowserver.base.limits import Limits
from flowserver.machine.events import EventType
from flowserver.machine.messages import Failure, Redrive, Rewind, Stop, Success
from flowserver.machine.redrive import waits_only
from flowserver.machine.redrive_places import fit
from flowserver.machine.state import Scope, Status, WaitKind
from flowserver.machine.turn import OutcomeKind
from tests.support.flows import flow
from tests.support.world import World, lines, trace

FN = "resourceArn: 'acs:fc:::services/s/functions/{}'"
PAY = f"{{type: task, name: pay, {FN.format('pay')}}}"
FAILED = Failure("E1", "no")
LOOP = f"""\
- type: foreach
  name: all
  iterationMapping: {{collection: $.items, item: item}}
  steps: [{PAY}]
"""


def waiting(steps: str, attributes: str = "", **settings: object) -> World:
    """A world whose only call has failed."""
    world = World(flow(steps, attributes), waits_for_redrive=True, **settings)  # type: ignore[arg-type]
    world.start()
    world.reply(FAILED)
    assert (world.execution.status, world.scope.wait) == (Status.RUNNING, WaitKind.REDRIVE)
    return world


def waits(world: World) -> list[Scope]:
    return [scope for scope in world.execution.scopes.values() if scope.wait is WaitKind.REDRIVE]


def test_it_shows_what_failed_and_has_nothing_but_its_deadline() -> None:
    world = waiting(f"- {PAY}")
    execution = world.execution
    assert (execution.error, execution.cause, execution.failed_step) == ("E1", "no", "pay")
    assert (execution.waiting_steps, world.scope.wake_at) == (1, None)
    assert world._timers()[0][0] == execution.deadline_at
    assert world.event(EventType.STEP_WAITING_FOR_REDRIVE) == {"error": "E1", "cause": "no"}


def test_a_redrive_makes_the_call_again_with_its_key_in_the_same_entry() -> None:
    world = waiting(f"- {PAY}")
    first, end = world.calls[-1], len(world.events)
    world.now_ms += 5_000
    world.redrive()
    told = [line.replace("services/s/functions/", "") for line in trace(world.events[end:])]
    assert told == lines("""
        8 7 -   ExecutionRedriven {"redriveCount":1,"waitingSteps":1}
        9 7 pay TaskScheduled     {"resourceArn":"acs:fc:::pay","pattern":"requestResponse","input":{}}
        10 9 pay TaskStarted      {}
    """)
    second, execution = world.calls[-1], world.execution
    assert (second.idempotency_key, second.attempt) == (first.idempotency_key, 2)
    assert (execution.error, execution.failed_step, execution.waiting_steps) == (None, None, 0)
    assert (execution.redrive_count, execution.redriven_at) == (1, world.now_ms)
    world.reply(Success({"b": 2}))
    assert execution.output == {"b": 2}


def test_it_waits_again_if_the_call_fails_again_and_its_retries_count_from_zero() -> None:
    world = World(flow(f"- {PAY[:-1]}, retry: [{{errors: [E1], maxAttempts: 1}}]}}"), waits_for_redrive=True)
    world.start()
    for redrives in range(3):
        assert world.execution.redrive_count == redrives
        world.reply(FAILED)
        world.wake()
        world.reply(FAILED)
        assert world.execution.waiting_steps == 1
        world.redrive()


def test_messages_for_the_attempt_that_failed_are_stale() -> None:
    world = waiting(f"- {PAY[:-1]}, pattern: waitForCallback}}")
    assert world.reply(Success({})).outcome.kind is OutcomeKind.STALE
    assert world.report(Success({})).outcome.kind is OutcomeKind.STALE
    token = world.calls[-1].token
    world.redrive()
    assert world.calls[-1].token != token
    assert world.report(Success({}), token).outcome.kind is OutcomeKind.STALE
    world.report(Success({"a": 1}))
    assert world.execution.output == {"a": 1}


def test_other_iterations_continue_and_all_waiting_steps_are_redriven_together() -> None:
    world = World(flow(LOOP), input={"items": [1, 2, 3]}, waits_for_redrive=True)
    world.start()
    one, two, three = world.calls
    world.reply(FAILED, one)
    world.reply(Success({"n": 2}), two)
    world.reply(FAILED, three)
    assert (world.execution.failed_step, world.execution.waiting_steps) == ("all[0].pay", 2)
    world.redrive()
    for number, call in enumerate(world.calls[3:], 4):
        world.reply(Success({"n": number}), call)
    assert world.execution.status is Status.SUCCEEDED
    assert len(world.calls) == 5


def test_a_redrive_does_not_change_steps_under_way() -> None:
    world = World(flow(LOOP), input={"items": [1, 2]}, waits_for_redrive=True)
    world.start()
    one, two = world.calls
    world.reply(FAILED, one)
    world.redrive()
    assert len(world.calls) == 3
    world.reply(Success({}), two)
    world.reply(Success({}))
    assert world.execution.status is Status.SUCCEEDED


def test_the_deadline_ends_the_wait_and_a_redrive_gives_all_the_time_again() -> None:
    world = waiting(f"- {PAY}", "timeoutSeconds: 10")
    world.now_ms += 9_000
    world.redrive()
    assert world.execution.deadline_at == world.now_ms + 10_000
    world.reply(FAILED)
    world.wake()
    assert world.execution.status is Status.TIMED_OUT
    assert (world.execution.waiting_steps, world.execution.error) == (0, "FnF.ExecutionTimeout")


def test_an_execution_that_was_stopped_while_it_waited_is_redriven_as_any_other() -> None:
    world = waiting(f"- {PAY}")
    world.tell(Stop("Enough"))
    assert (world.execution.status, world.execution.error) == (Status.STOPPED, "Enough")
    assert [scope.wait for scope in world.execution.kept.values()] == [WaitKind.REDRIVE]
    world.redrive()
    world.reply(Success({"a": 1}))
    assert world.execution.output == {"a": 1}


def test_a_redriven_one_waits_as_its_flow_said_when_it_started() -> None:
    world = waiting(f"- {PAY}")
    world.tell(Stop())
    world.redrive()
    world.reply(FAILED)
    assert (world.execution.status, world.execution.waiting_steps) == (Status.RUNNING, 1)


@pytest.mark.parametrize(
    "step",
    [
        "{type: pass, name: s, inputMappings: [{target: a, source: $input.none}]}",
        "{type: pass, name: s, outputMappings: [{target: a, source: $local.none}]}",
        "{type: wait, name: s, duration: $.none}",
        "{type: foreach, name: s, iterationMapping: {collection: $.none, item: i}, steps: [{type: pass, name: p}]}",
        "{type: choice, name: s, outputMappings: [{target: a, source: $local.none}], choices: []}",
    ],
)
def test_every_step_that_opened_no_lists_waits_and_is_entered_anew(step: str) -> None:
    world = World(flow("- " + step), waits_for_redrive=True, missing_source="fail")
    world.start()
    assert (world.scope.wait, world.execution.failed_step) == (WaitKind.REDRIVE, "s")
    world.execution.input = {"none": [1]}
    world.redrive()
    exits = [load_json(event.detail) for event in world.events if event.type is EventType.STEP_EXITED]
    assert exits[0] == {"local": {}, "redriven": True}
    assert world.entered[:2] == ["s", "s"]


def test_the_step_may_get_another_input() -> None:
    world = waiting(f"- {PAY}")
    world.redrive(Redrive(input_of=1, input={"b": 2}))
    assert world.calls[-1].input == {"b": 2}
    world.reply(Success({"c": 3}))
    assert world.execution.output == {"c": 3}


@pytest.mark.parametrize(
    "steps",
    [
        "- {type: fail, name: f, error: E1}",
        "- {type: parallel, name: f, branches: [{steps: [{type: pass, name: p}]}], "
        "outputMappings: [{target: a, source: $local.none}]}",
        "- {type: foreach, name: f, iterationMapping: {collection: $.none, item: i}, steps: [{type: pass, name: p}]}",
    ],
)
def test_a_failure_that_a_redrive_could_not_resume_alone_ends_the_execution(steps: str) -> None:
    limits = Limits(live_scopes_max=1) if "foreach" in steps else None
    world = World(
        flow(steps), input={"none": [1]} if limits else {}, waits_for_redrive=True, missing_source="fail", limits=limits
    )
    world.start()
    assert (world.execution.status, world.execution.failed_step) == (Status.FAILED, "f")


def test_a_fail_step_ends_also_the_branches_that_wait() -> None:
    branches = f"[{{steps: [{PAY}]}}, {{steps: [{PAY.replace('pay', 'ask')}, {{type: fail, name: f, error: E2}}]}}]"
    world = World(flow(f"- {{type: parallel, name: p, branches: {branches}}}"), waits_for_redrive=True)
    world.start()
    pay, ask = world.calls
    world.reply(FAILED, pay)
    world.reply(Success({}), ask)
    assert (world.execution.status, world.execution.failed_step) == (Status.FAILED, "p[1].f")
    world.redrive()
    assert world.execution.is_running is False, "the fail step fails again"


ALL = LOOP + "  outputMappings: [{target: all, source: '$local[*]'}]\n"


def _waiting_loop() -> World:
    """Of three iterations the second is done and the others wait."""
    world = World(flow(f"- {{type: pass, name: first}}\n{ALL}"), input={"items": [1, 2, 3]}, waits_for_redrive=True)
    world.start()
    one, two, three = world.calls
    world.reply(FAILED, one)
    world.reply(Success({"n": 2}), two)
    world.reply(FAILED, three)
    return world


def test_with_another_definition_it_goes_on_as_if_it_had_been_stopped() -> None:
    world = _waiting_loop()
    new = flow(f"- {{type: parallel, name: new, branches: [{{steps: [{{type: pass, name: p}}]}}]}}\n{ALL}")
    assert fit(world.flow, new, world.execution) == []
    world.flow = new
    first, end = world.calls[0], len(world.events)
    world.redrive(Redrive(enters_again=True, detail={"definition": "current"}))
    assert trace(world.events[end:])[0].endswith('ExecutionRedriven {"redriveCount":1,"definition":"current"}')
    assert world.entered[-3:] == ["all", "pay", "pay"]
    assert (world.execution.waiting_steps, world.execution.error) == (0, None)
    assert world.calls[3].idempotency_key != first.idempotency_key
    world.reply(Success({"n": 1}), world.calls[3])
    world.reply(Success({"n": 3}), world.calls[4])
    assert world.execution.output == {"all": [{"n": 1}, {"n": 2}, {"n": 3}]}


def test_from_an_earlier_step_what_was_done_since_is_dropped() -> None:
    world = _waiting_loop()
    world.redrive(Redrive(rewind=Rewind(1, 0, {"was": 1})))
    assert (len(world.execution.scopes), world.execution.finished_count) == (4, 0)
    for call in world.calls[3:]:
        world.reply(Success({"n": 0}), call)
    assert world.execution.output == {"was": 1, "all": [{"n": 0}] * 3}


def test_while_another_step_runs_it_cannot_start_over() -> None:
    world = World(flow(LOOP), input={"items": [1, 2]}, waits_for_redrive=True)
    world.start()
    world.reply(FAILED)
    assert not waits_only(world.execution)
    assert world.ignores(Redrive(enters_again=True))
    world.reply(FAILED, world.calls[0])
    assert waits_only(world.execution)


def test_an_execution_that_waits_for_nothing_of_the_kind_ignores_a_redrive() -> None:
    world = World(flow(f"- {PAY}"), waits_for_redrive=True)
    world.start()
    assert world.ignores(Redrive())
