"""Paths of events: the events that a path names, and the paths in a damaged history."""

import re

import pytest

from flowserver.base.step_paths import STEP_PATTERN, is_path
from flowserver.machine import event_paths
from flowserver.machine.event_paths import EventPaths, matches_path
from flowserver.machine.events import Event
from flowserver.machine.messages import Success
from tests.support.flows import flow
from tests.support.world import World

STEPS = """
- type: foreach
  name: each
  iterationMapping: {collection: $.items, item: item}
  steps:
  - type: choice
    name: check
    default: {steps: [{type: pass, name: weigh}]}
  - {type: task, name: charge, resourceArn: 'acs:fc:::services/s/functions/f'}
- type: parallel
  name: ship
  branches:
  - steps: [{type: pass, name: book}]
  - steps: [{type: pass, name: book}]
"""


def _run() -> tuple[list[Event], EventPaths]:
    world = World(flow(STEPS), input={"items": [1, 2, 3]})
    world.start()
    for call in list(world.calls):
        world.reply(Success({}), call)
    assert not world.execution.is_running
    paths = EventPaths()
    for event in world.events:
        paths.add(event)
    return list(world.events), paths


@pytest.mark.parametrize(
    ("wanted", "types"),
    [
        ("each[1].charge", "StepEntered StepStarted TaskScheduled TaskStarted TaskSucceeded StepSucceeded StepExited"),
        ("each[2].check.weigh", "StepEntered StepStarted StepSucceeded StepExited"),
        ("ship[1].book", "StepEntered StepStarted StepSucceeded StepExited"),
        ("ship", "StepEntered StepStarted StepSucceeded StepExited"),
        ("each[3].charge", ""),
        ("each.charge", ""),
        ("ship[1]", "BranchEntered StepEntered StepStarted StepSucceeded StepExited BranchExited"),
    ],
)
def test_a_path_names_the_events_of_one_step(wanted: str, types: str) -> None:
    events, paths = _run()
    found = [events[event_id - 1] for event_id in paths.find(wanted)]
    assert [str(event.type) for event in found] == types.split()


def test_empty_brackets_match_any_iteration_or_branch() -> None:
    _, paths = _run()
    charges = [event_id for number in range(3) for event_id in paths.find(f"each[{number}].charge")]
    assert paths.find("each[].charge") == sorted(charges)
    assert paths.find("ship[].book") == sorted(paths.find("ship[0].book") + paths.find("ship[1].book"))
    everything = [event_id for number in range(3) for event_id in paths.find(f"each[{number}]")]
    assert paths.find("each[]") == sorted(everything)


def test_one_path_is_found_without_looking_at_all(monkeypatch: pytest.MonkeyPatch) -> None:
    """An execution may have a hundred thousand paths."""
    events, paths = _run()
    of_event = paths.paths_of(event.event_id for event in events)
    monkeypatch.setattr(event_paths, "_pattern", None)
    for path in {*of_event} - {""}:
        found = paths.find(path, is_exact=True)
        assert found == [event.event_id for event, each in zip(events, of_event, strict=True) if each == path]
    assert paths.find("each[1].charge") == paths.find("each[1].charge", is_exact=True)
    assert paths.find("each[9].charge") == []


def test_every_event_of_a_step_has_a_path() -> None:
    events, paths = _run()
    told = paths.paths_of(event.event_id for event in events)
    assert all(bool(path) is bool(event.step_name) for path, event in zip(told, events, strict=True))
    assert {path for path in told if path.startswith("each[0]")} == {
        "each[0]", "each[0].check", "each[0].check.weigh", "each[0].charge",
    }  # fmt: skip
    assert paths.paths_of(iter([len(events) + 1])) == [""]


def test_where_the_history_has_a_hole_only_the_name_is_known() -> None:
    events, whole = _run()
    paths = EventPaths()
    entered = whole.find("each[1].charge")[0]
    for event in events:
        if event.event_id != entered:
            paths.add(event)
    assert paths.paths_of(iter([entered, entered + 1, entered - 1]))[:2] == ["", "charge"]
    assert paths.find("each[0].charge") == whole.find("each[0].charge")
    assert paths.last_event_id == len(events)


def test_the_memory_used_is_small() -> None:
    events, paths = _run()
    assert paths.size < 1_000 * len(events)


@pytest.mark.parametrize("step", ["a", "a.b", "a[1]", "a[].b", "a[17].b_c-d[0].e"])
def test_valid_paths(step: str) -> None:
    assert re.search(STEP_PATTERN, step)
    assert is_path(step) is (step != "a")


@pytest.mark.parametrize("step", ["", "a.", ".a", "1a", "a[x]", "a[1][2]", "a b", "a[1]b", "[1]", "a[1234567890]"])
def test_invalid_paths(step: str) -> None:
    assert not re.search(STEP_PATTERN, step)


def test_brackets_are_not_patterns() -> None:
    assert matches_path("a[1].b", "a[1].b")
    assert not matches_path("a1.b", "a[1].b")
    assert not matches_path("a[1]xb", "a[1].b")
