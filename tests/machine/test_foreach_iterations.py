"""The status, instants and errors of each iteration of a foreach, folded from events."""

import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs

from flowserver.base.limits import Limits
from flowserver.machine.events import Event, EventType
from flowserver.machine.foreach_iterations import ITERATION_BYTES, Iteration, Loop
from flowserver.machine.messages import Failure, Stop, Success
from flowserver.machine.step_summary import Iterations, StepStatus
from flowserver.machine.step_summary_fold import StepSummaries
from tests.conformance.cases import Reply
from tests.support.flows import flow
from tests.support.world import NOW_MS, World
from tests.support.written_events import FAILED_LOOP, written_events

NESTED = """
    - type: foreach
      name: pack
      iterationMapping: {collection: $.list, item: it}
      steps:
      - type: choice
        name: check
        default:
          steps:
          - type: foreach
            name: inner
            iterationMapping: {collection: $.list, item: it}
            steps:
            - type: parallel
              name: both
              branches:
              - steps:
                - {type: task, name: label, resourceArn: 'acs:fc:::services/s/functions/label',
                   retry: [{errors: [Busy], intervalSeconds: 1, maxAttempts: 3}]}
              - steps: [{type: pass, name: stick}]
"""


def _fold(events: list[Event]) -> StepSummaries:
    summaries = StepSummaries(with_iterations=True)
    for event in events:
        summaries.add(event)
    return summaries


def _loop(summaries: StepSummaries, path: str) -> Loop:
    assert summaries.loops is not None
    loop = summaries.loops.get(path)
    assert loop is not None
    return loop


def _all(summaries: StepSummaries, path: str) -> list[Iteration]:
    return list(_loop(summaries, path).find(path, 0, None))


def test_the_iterations_of_a_foreach_in_iterations_of_another() -> None:
    world = World(flow(NESTED), input={"list": [1, 2]}, limits=Limits(foreach_concurrency_max=1))
    world.start()
    world.now_ms += 5_000
    world.reply(Failure("Busy", ""))
    summaries = _fold(world.events)
    inner = "pack[0].check.inner"
    (first,) = _all(summaries, inner)
    assert first == Iteration(
        0, f"{inner}[0]", StepStatus.RUNNING, NOW_MS, NOW_MS + 5_000, "both[1].stick", attempts=1, error="Busy"
    )
    (outer,) = _all(summaries, "pack")
    assert (outer.path, outer.status, outer.step, outer.attempts) == ("pack[0]", StepStatus.RUNNING, "check.inner", 0)
    assert _loop(summaries, "pack").counts() == Iterations(total=2, running=1)


def test_iterations_that_succeeded_have_no_error() -> None:
    replies = {"label": [Reply(raises="Busy"), *[Reply(returns={})] * 4]}
    world = World(flow(NESTED), input={"list": [1, 2]}, replies=replies, limits=Limits(foreach_concurrency_max=1))
    world.run()
    summaries = _fold(world.events)
    assert summaries.loops is not None
    assert len(summaries.loops) == 3
    assert [each.path for each in _all(summaries, "pack[1].check.inner")] == [
        "pack[1].check.inner[0]", "pack[1].check.inner[1]",
    ]  # fmt: skip
    assert {each.status for each in _all(summaries, "pack")} == {StepStatus.SUCCEEDED}
    (first, _) = _all(summaries, "pack[0].check.inner")
    assert (first.status, first.attempts, first.error) == (StepStatus.SUCCEEDED, 2, None)


def test_a_failed_iteration_cuts_others_short() -> None:
    world = World(flow(NESTED), input={"list": [1, 2]}, replies={})
    world.start()
    world.now_ms += 1_000
    world.reply(Success({}), world.calls[0])
    world.reply(Failure("Torn", ""), world.calls[1])
    summaries = _fold(world.events)
    succeeded, failed = _all(summaries, "pack[0].check.inner")
    assert (succeeded.status, succeeded.error) == (StepStatus.SUCCEEDED, None)
    assert (failed.status, failed.error) == (StepStatus.FAILED, "Torn")
    assert [each.status for each in _all(summaries, "pack")] == [StepStatus.FAILED, StepStatus.CANCELLED]
    assert {each.status for each in _all(summaries, "pack[1].check.inner")} == {StepStatus.CANCELLED}
    assert [each.index for each in _loop(summaries, "pack").find("pack", 0, StepStatus.CANCELLED)] == [1]


def test_a_copy_of_a_fold_goes_on_by_itself() -> None:
    world = World(flow(NESTED), input={"list": [1, 2]}, replies={})
    world.start()
    world.now_ms += 1_000
    world.reply(Success({}), world.calls[0])
    world.reply(Failure("Torn", ""), world.calls[1])
    whole = _fold(world.events)
    for number in range(len(world.events)):
        summaries = _fold(world.events[:number])
        copied = pickle.loads(pickle.dumps(summaries))
        for event in world.events[number:]:
            copied.add(event)
        for path in ("pack", "pack[0].check.inner", "pack[1].check.inner"):
            assert _all(copied, path) == _all(whole, path)
        assert whole.loops is not None
        assert [loop.counts() for loop in copied.loops.all()] == [loop.counts() for loop in whole.loops.all()]
        assert copied.size == whole.size


def test_a_stopped_execution_cancels_what_runs() -> None:
    world = World(flow(NESTED), input={"list": [1, 2]})
    world.start()
    world.now_ms += 60_000
    world.tell(Stop("Enough", None))
    summaries = _fold(world.events)
    for path in ("pack", "pack[0].check.inner", "pack[1].check.inner"):
        assert [(each.status, each.last_ms) for each in _all(summaries, path)] == [
            (StepStatus.CANCELLED, NOW_MS + 60_000)
        ] * 2


AGAIN = 'IterationEntered pack 19 {"index":1,"total":4}'


def test_a_redrive_keeps_iterations_that_succeeded() -> None:
    failed = _fold(written_events(*FAILED_LOOP))
    assert [(each.status, each.error) for each in _all(failed, "pack")] == [
        (StepStatus.SUCCEEDED, None), (StepStatus.FAILED, "Torn"),
    ]  # fmt: skip
    redriven = (*FAILED_LOOP, "ExecutionRedriven - 16", 'StepEntered pack 17 {"resumes":2}', "StepStarted pack 18")
    before = _fold(written_events(*redriven))
    assert [each.index for each in _all(before, "pack")] == [0]
    assert _loop(before, "pack").counts() == Iterations(total=4, done=1)
    first, second = _all(_fold(written_events(*redriven, AGAIN)), "pack")
    assert (first.status, first.first_ms) == (StepStatus.SUCCEEDED, NOW_MS + 4)
    assert (second.status, second.first_ms, second.error, second.step) == (
        StepStatus.RUNNING, NOW_MS + 20, None, None,
    )  # fmt: skip


def test_a_step_that_is_entered_anew_begins_again() -> None:
    dropped = _fold(written_events(*FAILED_LOOP, "ExecutionRedriven - 16", "StepEntered pack 17"))
    assert dropped.loops is not None
    assert (dropped.loops.get("pack"), len(dropped.loops)) == (None, 0)
    lines = (*FAILED_LOOP, "ExecutionRedriven - 16", "StepEntered pack 17", "StepStarted pack 18", AGAIN)
    again = _fold(written_events(*lines))
    assert [each.index for each in _all(again, "pack")] == [1]


def test_what_ten_thousand_iterations_take() -> None:
    entered = (f'IterationEntered pack 3 {{"index":{index},"total":10000}}' for index in range(10_000))
    summaries = _fold(written_events(*FAILED_LOOP[:3], *entered))
    assert summaries.loops is not None
    assert summaries.loops.size == len("pack") + 10_000 * ITERATION_BYTES
    assert [each.index for each in _loop(summaries, "pack").find("pack", 9_998, StepStatus.RUNNING)] == [9_998, 9_999]


@pytest.mark.parametrize("index", ["-1", "null", "999999999999"])
def test_an_impossible_index_takes_no_memory(index: str) -> None:
    summaries = _fold(written_events(*FAILED_LOOP[:3], f'IterationEntered pack 3 {{"index":{index}}}'))
    assert summaries.loops is not None
    assert summaries.loops.size < 100


@given(st.data())
def test_a_history_with_holes(data: st.DataObject) -> None:
    replies = {"label": [Reply(returns={}), Reply(raises="E"), Reply(returns={})]}
    world = World(flow(NESTED), input={"list": [1, 2]}, replies=replies)
    world.run()
    kept = data.draw(st.sets(st.sampled_from(range(len(world.events)))))
    summaries = _fold([structs.replace(world.events[number]) for number in sorted(kept)])
    assert summaries.loops is not None
    ended = EventType.EXECUTION_FAILED in {world.events[number].type for number in kept}
    for path, loop in summaries.loops._loops.items():
        iterations = list(loop.find(path, 0, None))
        assert all(each.first_ms <= each.last_ms for each in iterations)
        assert not ended or all(each.status is not StepStatus.RUNNING for each in iterations)
        assert len(iterations) <= loop.total
