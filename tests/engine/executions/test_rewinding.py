"""Step summaries as they were after earlier events, and how many events are read for them."""

from collections.abc import Callable, Iterator
from functools import partial

import pytest

from flowserver.base.limits import Limits
from flowserver.machine.events import Event
from flowserver.machine.foreach_iterations import Iteration, Loop
from flowserver.machine.step_summary import Iterations, StepStatus
from flowserver.machine.step_summary_fold import StepSummaries
from flowserver.operations import rewinding
from flowserver.operations.redrive_plans import RedriveWish
from flowserver.operations.rewinding import RewindableSummaries
from flowserver.operations.step_summaries import StepPage
from tests.conformance.cases import Reply
from tests.engine.nodes import Node
from tests.support.flows import flow
from tests.support.world import World

PACK = """
- type: foreach
  name: pack
  iterationMapping: {collection: $.list, item: item}
  steps:
  - {type: task, name: label, resourceArn: 'acs:fc:::services/shop/functions/label'}
  - {type: pass, name: stick}
"""
NESTED = """
- type: foreach
  name: pack
  iterationMapping: {collection: $.list, item: item}
  steps:
  - type: foreach
    name: fold
    iterationMapping: {collection: $.item, item: part}
    steps:
    - {type: pass, name: crease}
"""
WITHOUT_TASKS = PACK.replace(
    "task, name: label, resourceArn: 'acs:fc:::services/shop/functions/label'", "pass, name: a"
)


@pytest.mark.parametrize("bytes_max", [1_000_000, 8_000, 0])
def test_after_each_event_it_is_the_fold_of_the_events_until_then(
    monkeypatch: pytest.MonkeyPatch, bytes_max: int
) -> None:
    """Also if there is room for a few snapshots only, or for none."""
    monkeypatch.setattr(rewinding, "EVENTS_BETWEEN", 40)
    monkeypatch.setattr(rewinding, "LATER", 1)
    replies = {"label": [*[Reply(returns={})] * 45, Reply(raises="Torn")]}
    world = World(flow(PACK), input={"list": list(range(60))}, replies=replies)
    world.run()
    make = partial(StepSummaries, with_iterations=True)
    fold = RewindableSummaries(make, bytes_max)
    for event in world.events:
        fold.add(event)
        assert fold.size - fold.newest.size <= bytes_max
    single = make()
    for event in world.events:
        single.add(event)
        if event.event_id % 3:
            continue
        then = fold.before(event.event_id)()
        assert then.last_event_id <= event.event_id
        for each in world.events[then.last_event_id : event.event_id]:
            then.add(each)
        assert (then.steps(), then.size, then.execution_status) == (
            single.steps(), single.size, single.execution_status,
        )  # fmt: skip
        assert _iterations(then) == _iterations(single)
    assert fold.newest.steps() == single.steps()
    assert (fold.size > fold.newest.size) is bool(bytes_max)


def _iterations(summaries: StepSummaries, path: str = "pack") -> list[Iteration]:
    loop = summaries.loops and summaries.loops.get(path)
    return list(loop.find(path, 0, None)) if isinstance(loop, Loop) else []


def test_a_summary_with_very_many_open_lists_is_not_copied(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rewinding, "EVENTS_BETWEEN", 40)
    monkeypatch.setattr(rewinding, "LATER", 1)
    monkeypatch.setattr(rewinding, "ENTRIES_MAX", 50)
    world = World(flow(PACK), input={"list": list(range(100))}, replies={"label": [Reply(returns={})]})
    world.run()
    fold = RewindableSummaries(StepSummaries, 1_000_000)
    widths = []
    for event in world.events:
        before = fold.size - fold.newest.size
        fold.add(event)
        if fold.size - fold.newest.size > before:
            widths.append(len(fold.newest))
    assert widths
    assert max(widths) <= 50


def test_loops_that_have_ended_prevent_no_copy(monkeypatch: pytest.MonkeyPatch) -> None:
    """A foreach in a foreach leaves very many loops; they are copied some at a time."""
    monkeypatch.setattr(rewinding, "EVENTS_BETWEEN", 40)
    monkeypatch.setattr(rewinding, "LATER", 1)
    monkeypatch.setattr(rewinding, "ENTRIES_MAX", 20)
    monkeypatch.setattr(rewinding, "LOOPS_AT_ONCE", 7)
    world = World(flow(NESTED), input={"list": [[1, 2]] * 30})
    world.run()
    make = partial(StepSummaries, with_iterations=True)
    fold, single = RewindableSummaries(make, 1_000_000), make()
    for event in world.events:
        fold.add(event)
    last = world.events[-1].event_id
    then = fold.before(last)()
    assert last - then.last_event_id < 100
    for event in world.events[: then.last_event_id]:
        single.add(event)
    for summaries in (then, single):
        for event in world.events[summaries.last_event_id :]:
            summaries.add(event)
        assert len(summaries.loops or ()) == 31
    assert (then.steps(), then.size) == (single.steps(), single.size)
    for path in ("pack", "pack[0].fold", "pack[29].fold"):
        assert _iterations(then, path) == _iterations(single, path) != []


@pytest.fixture
def added(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[int]]:
    """The events that summaries have taken in."""
    ids: list[int] = []
    add: Callable[[StepSummaries, Event], object] = StepSummaries.add

    def noted(summaries: StepSummaries, event: Event) -> object:
        ids.append(event.event_id)
        return add(summaries, event)

    monkeypatch.setattr(StepSummaries, "add", noted)
    yield ids


async def test_a_request_for_an_earlier_event_reads_a_thousand_events_at_most(node: Node, added: list[int]) -> None:
    await node.create_flow("f", WITHOUT_TASKS)
    await node.start("f", "e", {"list": list(range(400))})
    await node.end_of("f", "e")
    last = (await _at(node, None)).last_event_id
    assert (len(added), last > 3_500) == (last, True)
    for event_id in (last, last - 1, last // 2, 999, 1):
        added.clear()
        page = await _at(node, event_id)
        assert (page.last_event_id, page.execution_status) == (event_id, "Succeeded" if event_id == last else "Running")
        assert len(added) < 1_000
    assert [step.path for step in (await _at(node, 2)).items] == ["pack"]
    added.clear()
    list_iterations = partial(node.operations.step_summaries.iterations, "f", "e", "pack")
    page = await list_iterations(at=last // 2, next_token="150", limit=1_000)
    assert (page.items[0].index, page.next_token, page.last_event_id) == (150, None, last // 2)
    assert 0 < page.counts.done < page.counts.total == 400
    assert len(added) < 3_000
    added.clear()
    page = await list_iterations(status=StepStatus.SUCCEEDED, next_token=None, limit=300)
    assert (len(page.items), page.next_token, page.counts) == (300, "300", Iterations(total=400, done=400))
    assert added == []


@pytest.mark.parametrize("limits", [Limits(page_bytes_max=25)])
async def test_a_page_of_iterations_is_bounded_by_its_bytes(node: Node) -> None:
    await node.create_flow("f", WITHOUT_TASKS)
    await node.start("f", "e", {"list": list(range(5))})
    await node.end_of("f", "e")
    page = await node.operations.step_summaries.iterations("f", "e", "pack", next_token=None, limit=None)
    assert ([each.path for each in page.items], page.next_token) == (["pack[0]", "pack[1]", "pack[2]"], "3")


async def test_an_earlier_event_than_a_redrive(node: Node, broken_items: set[int]) -> None:
    broken_items.add(3)
    await node.create_flow("f", PACK)
    await node.start("f", "e", {"list": list(range(8))})
    await node.end_of("f", "e")
    failed = await _at(node, None)
    broken_items.clear()
    await node.operations.redrives.redrive("f", "e", RedriveWish())
    await node.end_of("f", "e")
    assert (await _at(node, None)).execution_status == "Succeeded"
    assert await _at(node, failed.last_event_id) == failed
    assert (failed.execution_status, failed.items[0].status) == ("Failed", "Failed")
    assert (await _at(node, failed.last_event_id + 1)).execution_status == "Running"


async def _at(node: Node, event_id: int | None) -> StepPage:
    return await node.operations.step_summaries.summarize("f", "e", at=event_id, next_token=None, limit=None)
