"""Step summaries: of executions that were redriven, of long histories and of long paths."""

import asyncio

import pytest

from flowserver.base.errors import InvalidArgument
from flowserver.base.limits import Limits
from flowserver.machine.events import Event, EventType
from flowserver.machine.step_summary import Iterations, StepSummary
from flowserver.machine.step_summary_fold import Seen, StepSummaries
from flowserver.operations.redrive_plans import RedriveWish
from flowserver.store.executions.history_search import EventFilter
from tests.engine.nodes import Node

PACK = """
- type: foreach
  name: pack
  iterationMapping: {collection: $.list, item: item}
  steps:
  - {type: task, name: label, resourceArn: 'acs:fc:::services/shop/functions/label'}
"""


async def test_a_redrive_keeps_finished_steps_and_counts_new_failures(node: Node, broken_items: set[int]) -> None:
    broken_items.update({3, 5})
    await node.create_flow("f", PACK)
    await node.start("f", "e", {"list": list(range(8))})
    await node.end_of("f", "e")
    pack, label = await _steps(node)
    assert (pack.status, label.status, label.error) == ("Failed", "Failed", "Torn")
    assert pack.iterations is not None
    assert (pack.iterations.total, pack.iterations.failed, pack.iterations.running) == (8, 1, 0)
    broken_items.clear()
    await node.operations.redrives.redrive("f", "e", RedriveWish())
    await node.end_of("f", "e")
    pack, label = await _steps(node)
    assert (pack.status, pack.entered, pack.succeeded) == ("Succeeded", 1, 1)
    assert pack.iterations == Iterations(total=8, done=8)
    assert (label.entered, label.succeeded, label.failed, label.cancelled) == (8, 8, 0, 0)


async def test_requests_at_once_read_the_history_once(node: Node, monkeypatch: pytest.MonkeyPatch) -> None:
    """Else ten watchers of one long history would keep all threads for lists busy."""
    await node.create_flow("f", "- {type: pass, name: one}\n- {type: pass, name: two}")
    await node.start("f", "e")
    await node.end_of("f", "e")
    added: list[int] = []

    def add(summaries: StepSummaries, event: Event) -> Seen:
        added.append(event.event_id)
        return _ADD(summaries, event)

    monkeypatch.setattr(StepSummaries, "add", add)
    pages = await asyncio.gather(*(_steps(node) for _ in range(10)))
    assert all(page == pages[0] for page in pages)
    assert added == [event.event_id for event in await node.history("f", "e")]
    search = node.operations.history_search.search
    found = await search("f", "e", EventFilter(), with_paths=True, next_token=None, limit=None)
    assert [event.path for event in found.items if event.event.type == EventType.STEP_ENTERED] == ["one", "two"]
    assert len(added) == added[-1]  # the paths come from the same fold


_ADD = StepSummaries.add

NESTED = 20
LONG = "n" * 128


def _deep(level: int, indent: int = 0) -> str:
    """Choices within choices with long names, and many steps in the innermost."""
    if level == NESTED:
        return "\n".join(f"{' ' * indent}- {{type: pass, name: s{number}}}" for number in range(100))
    inner = _deep(level + 1, indent + 4)
    return (
        f"{' ' * indent}- type: choice\n{' ' * indent}  name: {LONG}\n{' ' * indent}  default:\n"
        f"{' ' * indent}    steps:\n{inner}"
    )


@pytest.mark.parametrize("limits", [Limits(step_paths_bytes_max=2_500_000)])
async def test_summaries_are_kept_up_to_a_bound_of_their_bytes(node: Node) -> None:
    """Long paths count: 100 steps whose paths have 2,600 characters each."""
    await node.create_flow("f", _deep(0))
    for number in range(6):
        await node.start("f", f"e{number}")
        await node.end_of("f", f"e{number}")
        await node.operations.step_summaries.summarize("f", f"e{number}", next_token=None, limit=None)
    kept = node.operations.step_summaries._folds
    paths = [sum(len(step.path) for step in each.summaries.newest.steps()) for each in kept.folds()]
    assert min(paths) > 250_000
    assert len(paths) == 2
    assert sum(each.size for each in kept.folds()) <= 2_500_000


@pytest.mark.parametrize("limits", [Limits(step_paths_bytes_max=100_000)])
async def test_an_execution_whose_paths_take_too_much_is_refused(node: Node) -> None:
    """And others are not affected."""
    await node.create_flow("hostile", _deep(0))
    await node.start("hostile", "e")
    await node.end_of("hostile", "e")
    await node.create_flow("f", "- {type: pass, name: one}")
    await node.start("f", "e")
    await node.end_of("f", "e")
    operations = node.operations
    with pytest.raises(InvalidArgument, match="step_paths_bytes_max"):
        await operations.step_summaries.summarize("hostile", "e", next_token=None, limit=None)
    with pytest.raises(InvalidArgument, match="step_paths_bytes_max"):
        await operations.history_search.search(
            "hostile", "e", EventFilter(), step=f"{LONG}.s1", next_token=None, limit=None
        )
    assert len(await _steps(node)) == 1
    assert len(operations.step_summaries._folds.folds()) == 1


async def _steps(node: Node) -> list[StepSummary]:
    page = await node.operations.step_summaries.summarize("f", "e", next_token=None, limit=None)
    return list(page.items)
