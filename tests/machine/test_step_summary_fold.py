"""The step summary: the status of each step path, compared with the live scopes and with single histories."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs

from flowserver.base.limits import Limits
from flowserver.language.graph import ChoiceStep, Flow, ForeachStep
from flowserver.language.parser import parse
from flowserver.language.picture import picture_of
from flowserver.machine.events import Event, EventType
from flowserver.machine.messages import Failure, Stop, Success
from flowserver.machine.state import Scope
from flowserver.machine.step_paths import path_of
from flowserver.machine.step_summary import (
    ATTEMPTS_KEPT,
    EDGE_BYTES,
    VISIT_BYTES,
    VISITS_KEPT,
    Attempt,
    EdgeKind,
    Iterations,
    StepStatus,
    StepSummary,
)
from flowserver.machine.step_summary_fold import ENTRY_BYTES, StepSummaries
from tests.conformance.cases import FlowCase, Reply, flow_cases
from tests.support.flows import flow
from tests.support.world import NOW_MS, World
from tests.support.written_events import FAILED_LOOP, written_events

RUN = [case for case in flow_cases() if case.refused is None]
PACK = """
    - {type: task, name: charge, resourceArn: 'acs:fc:::services/s/functions/charge',
       retry: [{errors: [Busy], intervalSeconds: 1, maxAttempts: 3}]}
    - type: foreach
      name: pack
      iterationMapping: {collection: $.list, item: it}
      steps:
      - {type: task, name: label, resourceArn: 'acs:fc:::services/s/functions/label'}
      - {type: pass, name: stick}
    - type: parallel
      name: ship
      branches:
      - steps: [{type: pass, name: book}]
      - steps:
        - type: choice
          name: check
          choices: [{condition: $.list == "", steps: [{type: pass, name: never}]}]
          default: {steps: [{type: pass, name: weigh}]}
"""


def _summed(events: Sequence[Event]) -> dict[str, StepSummary]:
    summaries = StepSummaries()
    for event in events:
        summaries.add(event)
    return {step.path: step for step in summaries.steps()}


def _entered_paths(world: World) -> Counter[str]:
    """The paths of the steps that the live scopes have entered."""
    return Counter(_path(world, scope) for scope in world.execution.scopes.values() if scope.step_input is not None)


def _path(world: World, scope: Scope) -> str:
    step = world.flow.lists[scope.list_id].steps[scope.step_index]
    if scope.parent_id is None:
        return step.name
    parent = world.execution.scopes[scope.parent_id]
    opener = world.flow.lists[parent.list_id].steps[parent.step_index]
    item = "" if isinstance(opener, ForeachStep) else scope.item
    number = "" if isinstance(opener, ChoiceStep) else f"[{item}]"
    return f"{_path(world, parent)}{number}.{step.name}"


def _check(world: World) -> StepSummaries:
    """The invariant after every turn."""
    summaries = StepSummaries(with_iterations=True)
    numbered: Counter[str] = Counter()
    for event in world.events:
        before = {step.path: _copy(step) for step in summaries.steps()}
        seen = summaries.add(structs.replace(event, detail=event.detail))
        changed = {step.path for step in summaries.steps() if before.get(step.path) != _copy(step)}
        assert changed <= {step.path for step in summaries.changed_after(event.event_id - 1)}
        numbered[seen.path] += (event.type is EventType.STEP_ENTERED) - (event.type is EventType.STEP_EXITED)
    if world.execution.is_running:
        live = [scope for scope in world.execution.scopes.values() if scope.step_input is not None]
        assert +numbered == Counter(path_of(world.flow, world.execution, scope) for scope in live)
    steps = summaries.steps()
    assert {step.path: step.running for step in steps if step.running} == _entered_paths(world)
    for step in steps:
        ended = step.succeeded + step.caught + step.failed + step.cancelled
        assert step.entered == step.running + ended
        assert len(step.visits) == min(step.visit_count, 2 * VISITS_KEPT)
        if step.visit_count == len(step.visits) == step.entered:
            assert sum(visit.last_ms is None for visit in step.visits) == step.running
        assert step.first_ms <= step.last_ms
        loop = step.iterations
        if loop is not None:
            assert loop.done + loop.failed + loop.aborted + loop.running <= loop.total
            assert loop == _counted(summaries, step.path)
    _check_edges(world.flow, steps)
    tasks = Counter(event.step_name for event in world.events if event.type is EventType.TASK_SCHEDULED)
    assert sum(step.attempts for step in steps) == tasks.total()
    assert summaries.loops is not None
    open_entries = len(summaries) - len(summaries.loops) - len(steps)
    assert not world.execution.is_running or open_entries <= 4 * len(world.execution.scopes)
    visits = sum(len(step.visits) for step in steps)
    assert summaries.visits_kept == visits
    of_steps = ENTRY_BYTES * len(summaries) + VISIT_BYTES * visits
    assert summaries.size == of_steps + _path_bytes(summaries) + summaries.loops.size
    return summaries


def _copy(step: StepSummary) -> StepSummary:
    loop = step.iterations and replace(step.iterations)
    return replace(step, iterations=loop, options=dict(step.options), edges=dict(step.edges), changed_event_id=0)


def _check_edges(flow: Flow, steps: Sequence[StepSummary]) -> None:
    """Every edge is one of the flow's picture; what a step was reached by adds up to how often it was entered."""
    picture = picture_of(flow)
    path = {node.id: node.path for node in picture.nodes} | {None: None}
    drawn = {(path[edge.source], path[edge.target]) for edge in picture.edges}
    reached: Counter[str | None] = Counter()
    choices = {node.path for node in picture.nodes if node.type == "choice"}
    for step in steps:
        assert sum(step.options.values()) <= step.entered
        assert bool(step.options) <= (step.path in choices)
        for edge, count in step.edges.items():
            assert (step.path, edge.to) in drawn
            assert edge.number is not None or edge.kind not in {EdgeKind.OPTION, EdgeKind.CATCH}
            assert step.path not in choices or edge.kind in {EdgeKind.OPTION, EdgeKind.DEFAULT, EdgeKind.AFTER}
            reached[edge.to] += count
    first = path[picture.lists[0].nodes[0]]
    for step in steps:
        assert step.entered - reached[step.path] == (step.path == first)


def _counted(summaries: StepSummaries, path: str) -> Iterations:
    """The iterations of all entries of a step, each looked at by itself."""
    assert summaries.loops is not None
    sums = Iterations()
    for numbered, loop in summaries.loops._loops.items():
        if loop.inner_path == f"{path}[].":
            of = Counter(each.status for each in loop.find(numbered, 0, None))
            sums.total += loop.total
            sums.done += of[StepStatus.SUCCEEDED]
            sums.failed += of[StepStatus.FAILED]
            sums.aborted += of[StepStatus.CANCELLED]
            sums.running += of[StepStatus.RUNNING]
    return sums


def _path_bytes(summaries: StepSummaries) -> int:
    """Of all paths that it keeps."""
    lists = set(summaries._lists.values())
    entries = [entry for each in lists for entry in each.entries]
    entries += [*summaries._unfinished.values(), *summaries._resumable.values()]
    assert sum(map(len, summaries._list_paths)) <= sum(map(len, summaries._steps))
    return (
        2 * sum(map(len, summaries._steps))
        + sum(len(step.edges) + len(step.options) for step in summaries.steps()) * EDGE_BYTES
        + sum(len(each.numbered) for each in lists)
        + sum(len(each.path) for each in entries)
    )


def test_a_whole_execution() -> None:
    replies = {"charge": [Reply(raises="Busy"), Reply(returns={})], "label": [Reply(returns={}, after_seconds=5)]}
    world = World(flow(PACK), input={"list": [1, 2, 3]}, replies=replies, limits=Limits(foreach_concurrency_max=2))
    world.run()
    steps = _summed(world.events)
    paths = "charge pack pack[].label pack[].stick ship ship[0].book ship[1].check ship[1].check.weigh"
    assert list(steps) == paths.split()
    assert {step.status for step in steps.values()} == {StepStatus.SUCCEEDED}
    assert (steps["charge"].attempts, steps["charge"].error) == (2, None)
    assert (steps["pack[].label"].entered, steps["pack[].label"].succeeded, steps["pack[].label"].attempts) == (3, 3, 3)
    assert steps["pack"].iterations == Iterations(total=3, done=3)
    assert (steps["pack"].first_ms, steps["pack"].last_ms) == (NOW_MS + 1_000, NOW_MS + 11_000)
    assert steps["ship"].iterations is None
    assert steps["charge"].last_attempts == (Attempt(NOW_MS, NOW_MS, "Busy"), Attempt(NOW_MS + 1_000, NOW_MS + 1_000))
    assert steps["pack[].label"].last_attempts == ()


def test_iterations_that_wait_for_a_slot_count_in_the_total() -> None:
    world = World(flow(PACK), input={"list": list(range(5))}, limits=Limits(foreach_concurrency_max=2))
    world.start()
    world.reply(Success({}))
    world.reply(Success({}), world.calls[1])
    steps = {step.path: step for step in _check(world).steps()}
    assert steps["pack"].iterations == Iterations(total=5, done=1, running=2)
    assert (steps["pack"].status, steps["pack[].label"].status) == (StepStatus.RUNNING, StepStatus.RUNNING)
    assert (steps["pack[].stick"].status, steps["charge"].status) == (StepStatus.SUCCEEDED, StepStatus.SUCCEEDED)


def test_a_failed_iteration_and_those_it_ends() -> None:
    world = World(flow(PACK), input={"list": [1, 2, 3]})
    world.start()
    world.reply(Success({}))
    world.reply(Success({}), world.calls[1])
    world.reply(Failure("Torn", "no paper"), world.calls[2])
    steps = {step.path: step for step in _check(world).steps()}
    assert steps["pack"].iterations == Iterations(total=3, done=1, failed=1, aborted=1)
    label = steps["pack[].label"]
    assert (label.status, label.error, label.succeeded, label.failed, label.cancelled) == (
        StepStatus.FAILED, "Torn", 1, 1, 1,
    )  # fmt: skip
    assert (steps["pack"].status, steps["pack"].error) == (StepStatus.FAILED, "Torn")


def test_open_steps_of_a_stopped_execution_are_cancelled() -> None:
    world = World(flow(PACK), input={"list": [1, 2]})
    world.start()
    world.reply(Success({}))
    world.now_ms += 60_000
    world.tell(Stop("Enough", None))
    steps = {step.path: step for step in _check(world).steps()}
    assert steps["pack"].iterations == Iterations(total=2, aborted=2)
    assert steps["pack[].label"].cancelled == 2
    assert (steps["pack"].status, steps["pack"].last_ms) == (StepStatus.CANCELLED, NOW_MS + 60_000)


def test_a_caught_error_and_a_loop() -> None:
    steps = """
        - {type: task, name: t, resourceArn: 'acs:fc:::services/s/functions/f', catch: [{errors: [Bad], goto: again}]}
        - {type: succeed, name: done}
        - {type: pass, name: again}
        - type: choice
          name: back
          choices: [{condition: 'true', goto: t}]
    """
    world = World(flow(steps), replies={"f": [Reply(raises="Bad"), Reply(raises="Bad"), Reply(returns={})]})
    world.run()
    t = _summed(world.events)["t"]
    assert (t.status, t.entered, t.caught, t.succeeded, t.error) == (StepStatus.SUCCEEDED, 3, 2, 1, None)
    assert _summed(world.events[:16])["t"].status is StepStatus.CAUGHT


def test_histories_of_older_servers_have_no_numbers_of_iterations() -> None:
    world = World(flow(PACK), input={"list": [1, 2, 3]}, replies={"charge": [Reply(returns={})]})
    world.run()
    events = [
        structs.replace(event, detail="{}") if event.type is EventType.ITERATION_ENTERED else event
        for event in world.events
    ]
    assert _summed(events)["pack"].iterations == Iterations(total=3, running=3)


@pytest.mark.parametrize("case", RUN, ids=str)
def test_after_every_turn_running_steps_are_those_of_the_live_scopes(case: FlowCase) -> None:
    limits = Limits.of(case.limits)
    world = World(parse(case.flow, limits).flow, input=case.input, replies=case.replies, limits=limits)
    world.start()
    _check(world)
    while world.execution.is_running and (message := world._next()):
        world.tell(message)
        _check(world)


@st.composite
def _lists(draw: st.DrawFn, depth: int = 0) -> str:
    """Nested step lists with some calls; names recur in other lists."""
    indent = "    " + "    " * depth
    kinds = ["pass", "task", "task"] + (["foreach", "parallel", "choice"] if depth < 3 else [])
    steps = ""
    for number in range(draw(st.integers(1, 2))):
        kind = draw(st.sampled_from(kinds))
        head = f"{indent}- type: {kind}\n{indent}  name: {kind}{number}\n"
        if kind == "task":
            head += f"{indent}  resourceArn: acs:fc:::services/s/functions/f\n"
        elif kind == "foreach":
            head += f"{indent}  iterationMapping: {{collection: $.list, item: it}}\n{indent}  steps:\n"
            head += draw(_lists(depth + 1))
        elif kind == "parallel":
            head += f"{indent}  branches:\n"
            for _ in range(2):
                head += f"{indent}  - steps:\n{draw(_lists(depth + 1))}"
        elif kind == "choice":
            head += f"{indent}  choices:\n{indent}  - condition: 'true'\n{indent}    steps:\n{draw(_lists(depth + 1))}"
        steps += head
    return steps


@given(_lists(), st.lists(st.booleans(), min_size=1, max_size=30), st.data())
def test_nested_lists(steps: str, answers: list[bool], data: st.DataObject) -> None:
    world = World(flow(steps), input={"list": [1, 2, 3]}, limits=Limits(foreach_concurrency_max=2))
    world.start()
    _check(world)
    answered: set[int] = set()
    for succeeds in answers:
        scopes = world.execution.scopes
        waiting = [call for call in world.calls if call.wait_id not in answered and call.scope_id in scopes]
        if not world.execution.is_running or not waiting:
            break
        call = data.draw(st.sampled_from(waiting))
        answered.add(call.wait_id)
        world.reply(Success({}) if succeeds else Failure("Bad"), call)
        _check(world)


@given(st.data())
def test_a_history_with_holes_is_summarized_as_far_as_possible(data: st.DataObject) -> None:
    replies = {"charge": [Reply(returns={})], "label": [Reply(returns={}), Reply(raises="E")]}
    world = World(flow(PACK), input={"list": [1, 2, 3]}, replies=replies)
    world.run()
    kept = data.draw(st.sets(st.sampled_from(range(len(world.events)))))
    for step in _summed([world.events[number] for number in sorted(kept)]).values():
        assert step.entered >= step.running >= 0


def _event(number: int, cause: int, type: EventType, detail: str = "{}") -> Event:
    return Event(number, cause, type, "" if number == 1 else "s", NOW_MS, detail)


@pytest.mark.parametrize(
    "events",
    [
        [_event(2, 1, EventType.STEP_SUCCEEDED)],
        [_event(2, 1, EventType.ITERATION_ENTERED), _event(3, 1, EventType.BRANCH_EXITED)],
        [
            _event(2, 1, EventType.STEP_ENTERED),
            _event(3, 2, EventType.STEP_STARTED),
            _event(4, 3, EventType.ITERATION_ENTERED, '{"index":null}'),
            _event(5, 3, EventType.STEP_EXITED, "[]"),
            _event(6, 4, EventType.ITERATION_EXITED, "[]"),
        ],
    ],
    ids=["no-step", "no-loop", "loop-is-over"],
)
def test_impossible_causes_are_ignored(events: list[Event]) -> None:
    assert all(not step.running for step in _summed([_event(1, 0, EventType.EXECUTION_STARTED), *events]).values())


def _told(*lines: str) -> dict[str, StepSummary]:
    return _summed(written_events(*lines))


def test_a_redrive_continues_the_same_loop() -> None:
    assert _told(*FAILED_LOOP)["pack"].iterations == Iterations(total=4, done=1, failed=1)
    steps = _told(
        *FAILED_LOOP,
        "ExecutionRedriven - 16",
        'StepEntered pack 17 {"resumes":2}',
        "StepStarted pack 18",
        'IterationEntered pack 19 {"index":1,"total":4}',
        "StepEntered label 20",
    )
    pack, label = steps["pack"], steps["pack[].label"]
    assert pack.iterations == Iterations(total=4, done=1, running=1)
    assert (pack.status, pack.entered, pack.failed) == (StepStatus.RUNNING, 1, 0)
    assert (label.status, label.entered, label.succeeded, label.failed) == (StepStatus.RUNNING, 2, 1, 0)


def test_a_redrive_from_an_earlier_step_drops_the_loop() -> None:
    dropped = _told(*FAILED_LOOP, "ExecutionRedriven - 16", "StepEntered first 17")
    assert (dropped["pack"].status, dropped["pack"].entered) == (StepStatus.CANCELLED, 0)
    assert dropped["pack"].iterations == Iterations()
    assert dropped["pack[].label"].status is StepStatus.SUCCEEDED
    again = _told(
        *FAILED_LOOP,
        "ExecutionRedriven - 16",
        "StepEntered pack 17",
        "StepStarted pack 18",
        'IterationEntered pack 19 {"index":0,"total":4}',
    )
    assert again["pack"].iterations == Iterations(total=4, running=1)


def test_a_redrive_keeps_successful_steps() -> None:
    first = ("ExecutionStarted - 0", "StepEntered a 1", "StepSucceeded a 2", "StepExited a 3", "ExecutionStopped - 4")
    a = _told(*first, "ExecutionRedriven - 5", "StepEntered b 6")["a"]
    assert (a.status, a.entered, a.succeeded) == (StepStatus.SUCCEEDED, 1, 1)


def test_times_and_attempts_are_those_of_the_last_run() -> None:
    """Neither the time between the failure and the redrive counts, nor do the attempts before it."""
    tried = ("StepEntered pay 1", "StepStarted pay 2", "TaskScheduled pay 3", 'TaskFailed pay 4 {"error":"E1"}')
    failed = (
        "ExecutionStarted - 0",
        *tried,
        'StepFailed pay 5 {"error":"E1"}',
        "StepExited pay 6",
        "ExecutionFailed - 7",
    )
    pay = _told(*failed)["pay"]
    assert (pay.began_ms, pay.attempts, pay.redrives, pay.error) == (pay.first_ms, 1, 0, "E1")
    again = ("ExecutionRedriven - 8", "StepEntered pay 9", "StepStarted pay 10", "TaskScheduled pay 11")
    pay = _told(*failed, *again)["pay"]
    assert (pay.began_ms - pay.first_ms, pay.attempts, pay.redrives, pay.error) == (8, 1, 1, None)
    assert pay.last_attempts == (Attempt(NOW_MS + 12),)
    pay = _told(*failed, *again, 'TaskFailed pay 12 {"error":"E2"}', "StepSucceeded pay 13", "StepExited pay 14")["pay"]
    assert (pay.status, pay.last_ms - pay.began_ms, pay.error) == (StepStatus.SUCCEEDED, 5, None)


WAITS = (
    "ExecutionStarted - 0",
    "StepEntered pay 1",
    "StepStarted pay 2",
    "TaskScheduled pay 3",
    "TaskStarted pay 4",
    'TaskFailed pay 5 {"error":"E1"}',
    'StepWaitingForRedrive pay 6 {"error":"E1","cause":""}',
)


def test_a_step_that_waits_for_a_redrive_is_counted_and_goes_on_in_the_same_entry() -> None:
    pay = _told(*WAITS)["pay"]
    assert (pay.status, pay.running, pay.waiting, pay.error) == (StepStatus.RUNNING, 1, 1, "E1")
    again = _told(*WAITS, 'ExecutionRedriven - 7 {"waitingSteps":1}', "TaskScheduled pay 7", "StepSucceeded pay 9")[
        "pay"
    ]
    assert (again.running, again.waiting, again.attempts, again.redrives) == (1, 0, 1, 1)
    assert (again.error, again.began_ms > again.first_ms) == (None, True)
    stopped = _told(*WAITS, "ExecutionStopped - 7")["pay"]
    assert (stopped.status, stopped.waiting) == (StepStatus.CANCELLED, 0)


def test_the_last_attempts_are_kept_and_end_with_their_step() -> None:
    retries = tuple(
        line
        for number in range(12)
        for line in (f"TaskScheduled pay {3 + 2 * number}", f'TaskFailed pay {4 + 2 * number} {{"error":"E{number}"}}')
    )
    first = ("ExecutionStarted - 0", "StepEntered pay 1", "StepStarted pay 2", *retries)
    pay = _told(*first)["pay"]
    assert (pay.attempts, len(pay.last_attempts), pay.last_attempts[-1].error) == (12, ATTEMPTS_KEPT, "E11")
    stopped = _told(*first[:4], "ExecutionStopped - 4")["pay"]
    assert stopped.last_attempts == (Attempt(NOW_MS + 4, NOW_MS + 5, "Cancelled"),)


def test_only_steps_that_waited_are_run_again_by_a_redrive_of_a_running_execution() -> None:
    first = ("ExecutionStarted - 0", "StepEntered a 1", "StepSucceeded a 2", "StepExited a 3", "StepEntered b 4")
    steps = _told(*first, "StepWaitingForRedrive b 5", 'ExecutionRedriven - 6 {"waitingSteps":1}')
    assert (steps["a"].redrives, steps["b"].redrives) == (0, 1)


def test_a_step_that_is_entered_anew_after_its_wait_counts_once() -> None:
    told = (
        *WAITS,
        'ExecutionRedriven - 7 {"waitingSteps":1}',
        'StepExited pay 7 {"redriven":true}',
        "StepEntered pay 9",
    )
    pay = _told(*told)["pay"]
    assert (pay.status, pay.entered, pay.running, pay.cancelled) == (StepStatus.RUNNING, 1, 1, 0)


def _edges(step: StepSummary) -> dict[tuple[str | None, str, int | None], int]:
    return {(edge.to, str(edge.kind), edge.number): count for edge, count in step.edges.items()}


LOOP = """
    - {type: pass, name: count, outputMappings: [{target: left, source: "$input.left[1]"}]}
    - type: choice
      name: check
      inputMappings: [{target: left, source: $local.left}]
      choices:
      - {condition: $.left == "never", goto: done}
      - {condition: $.left != "over", goto: count}
      - {condition: $.left == "gone", steps: [{type: pass, name: own}], goto: done}
      default: {goto: done}
    - {type: succeed, name: done}
"""


def test_a_choice_counts_its_options_and_where_they_led() -> None:
    world = World(flow(LOOP), input={"left": [0, [0, "over"]]})
    world.run()
    steps = _summed(world.events)
    assert steps["check"].options == {"1": 1, "default": 1}
    assert _edges(steps["check"]) == {("count", "option", 1): 1, ("done", "default", None): 1}
    assert _edges(steps["count"]) == {("check", "next", None): 2}
    assert _edges(steps["done"]) == {(None, "next", None): 1}


def test_an_option_with_own_steps_has_an_edge_into_them_and_one_after_them() -> None:
    lines = (
        *("ExecutionStarted - 0", "StepEntered c 1", 'StepStarted c 2 {"option":2}', "StepEntered own 3"),
        *("StepStarted own 4", "StepSucceeded own 5", "StepExited own 6", "StepSucceeded c 7", "StepExited c 8"),
        *("StepEntered c 9", 'StepStarted c 10 {"option":null}', "StepSucceeded c 11", "StepExited c 12"),
        "ExecutionSucceeded - 13",
    )
    steps = _told(*lines)
    assert steps["c"].options == {"2": 1, "none": 1}
    assert _edges(steps["c"]) == {("c.own", "option", 2): 1, ("c", "after", 2): 1, (None, "default", None): 1}
    assert _edges(steps["c.own"]) == {(None, "next", None): 1}


def test_what_an_earlier_version_did_not_record_has_no_number() -> None:
    lines = (
        *("ExecutionStarted - 0", "StepEntered c 1", "StepStarted c 2", "StepEntered own 3", "StepStarted own 4"),
        *('StepFailed own 5 {"caughtBy":"late"}', "StepExited own 6", "StepEntered late 7"),
    )
    steps = _told(*lines)
    assert steps["c"].options == {}
    assert _edges(steps["c"]) == {("c.own", "option", None): 1}
    assert _edges(steps["c.own"]) == {("c.late", "catch", None): 1}


def test_a_redrive_takes_no_edge_to_what_it_enters_again() -> None:
    failed = (
        *("ExecutionStarted - 0", "StepEntered a 1", "StepSucceeded a 2", "StepExited a 3"),
        *("StepEntered both 4", "StepStarted both 5", 'BranchEntered both 6 {"index":0}', "StepEntered pay 7"),
        *("StepStarted pay 8", "StepFailed pay 9", "StepExited pay 10", "BranchExited both 11"),
        *("StepFailed both 12", "StepExited both 13", "ExecutionFailed - 14", "ExecutionRedriven - 15"),
        *('StepEntered both 16 {"resumes":5}', "StepStarted both 17", 'BranchEntered both 18 {"index":0}'),
        *('StepEntered pay 19 {"resumes":8}', "StepSucceeded pay 20", "StepExited pay 21", "BranchExited both 22"),
    )
    steps = _told(*failed)
    assert _edges(steps["a"]) == {("both", "next", None): 1}
    assert _edges(steps["both"]) == {("both[0].pay", "branch", 0): 1}
    assert _edges(steps["both[0].pay"]) == {(None, "next", None): 1}


def test_visits_are_kept_apart_with_their_attempts_and_across_redrives() -> None:
    """The first and the last ones of a loop."""
    lines = ["ExecutionStarted - 0"]
    for _ in range(30):
        cause = len(lines)
        told = ("StepEntered", "StepStarted", "TaskScheduled", "TaskSucceeded", "StepSucceeded", "StepExited")
        lines += [f"{type} poll {cause + number}" for number, type in enumerate(told)]
    poll = _told(*lines)["poll"]
    assert (poll.visit_count, len(poll.visits)) == (30, 2 * VISITS_KEPT)
    begins = [visit.first_ms - NOW_MS for visit in poll.visits]
    assert begins == [2 + 6 * number for number in (*range(10), *range(20, 30))]
    assert all(visit.last_ms == visit.first_ms + 5 for visit in poll.visits)
    assert all(visit.attempts == (Attempt(visit.first_ms + 2, visit.first_ms + 3),) for visit in poll.visits)

    failed = ("ExecutionStarted - 0", "StepEntered pay 1", "StepStarted pay 2", "TaskScheduled pay 3")
    failed += ('TaskFailed pay 4 {"error":"E1"}', 'StepFailed pay 5 {"error":"E1"}', "StepExited pay 6")
    again = ("ExecutionFailed - 7", "ExecutionRedriven - 8", 'StepEntered pay 9 {"resumes":2}', "StepStarted pay 10")
    before, now = _told(*failed, *again)["pay"].visits
    assert (before.status, before.error, before.attempts[0].error) == (StepStatus.FAILED, "E1", "E1")
    assert (now.status, now.last_ms, now.error) == (StepStatus.RUNNING, None, None)


def test_a_visit_that_is_not_kept_ends_without_a_trace() -> None:
    """Of many iterations side by side only the first and the last are kept."""
    lines = ["ExecutionStarted - 0", "StepEntered pack 1", "StepStarted pack 2"]
    lines += [f'IterationEntered pack 3 {{"index":{number},"total":30}}' for number in range(30)]
    lines += [f"StepEntered label {4 + number}" for number in range(30)]
    for type in ("TaskScheduled", "TaskSucceeded", "StepSucceeded", "StepExited"):
        lines += [f"{type} label {len(lines) - 29 + number}" for number in range(30)]
    label = _told(*lines)["pack[].label"]
    assert (label.visit_count, len(label.visits), label.succeeded) == (30, 2 * VISITS_KEPT, 30)
    assert all(visit.status is StepStatus.SUCCEEDED for visit in label.visits)
    assert label.shown_bytes == len(label.path) + VISIT_BYTES * len(label.visits)


def test_a_choice_that_a_redrive_enters_again_keeps_its_option() -> None:
    lines = (
        *("ExecutionStarted - 0", "StepEntered c 1", 'StepStarted c 2 {"option":0}', "StepEntered own 3"),
        *("StepFailed own 4", "StepExited own 5", "StepFailed c 6", "StepExited c 7", "ExecutionFailed - 8"),
        *("ExecutionRedriven - 9", 'StepEntered c 10 {"resumes":2}', 'StepStarted c 11 {"option":0}'),
        *("StepEntered own 12", "StepSucceeded own 13", "StepExited own 14", "StepSucceeded c 15", "StepExited c 16"),
        "ExecutionSucceeded - 17",
    )
    steps = _told(*lines)
    assert steps["c"].options == {"0": 1}
    assert _edges(steps["c"]) == {("c.own", "option", 0): 1, (None, "after", 0): 1}


def test_what_a_damaged_history_says_of_options_and_ends_counts_nothing() -> None:
    steps = _told("ExecutionStarted - 0", "StepEntered c 1", 'StepStarted c 2 {"option":{}}', "ExecutionSucceeded - 3")
    assert (steps["c"].options, steps["c"].edges) == ({}, {})
