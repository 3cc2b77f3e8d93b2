"""An execution's data size is counted incrementally, and always equals the measured size.

`World.tell` compares the two after every turn (`tests.support.invariants`). These tests generate flows and messages of
every kind.
"""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from flowserver.base.json_values import dump_json
from flowserver.base.limits import Limits
from flowserver.language.parser import parse
from flowserver.machine.messages import Continue, DeadlineReached, Failure, Message, RetryLostCall, Stop, Success
from tests.support.world import World

VALUES = st.sampled_from(
    ["$input", "$local", "$input.list", "$local.text", "$input.it", "ä" * 40, "$context.step.name"]
)
MAPPINGS = st.lists(
    st.fixed_dictionaries({"target": st.sampled_from(["list", "text", "it", "ü"]), "source": VALUES}), max_size=3
)
RESULTS = st.one_of(
    st.dictionaries(st.sampled_from(["list", "text"]), st.text(max_size=60), max_size=2).map(Success),
    st.sampled_from([Failure("Bad", "cause"), Failure("Rare")]),
)
REPORTED = ["sync", "waitForCallback"]


def _lists(of: st.SearchStrategy[dict[str, Any]]) -> st.SearchStrategy[list[dict[str, Any]]]:
    """Lists of one to three steps, under names that differ."""
    return st.lists(of, min_size=1, max_size=3)


def _mapped(attributes: dict[str, Any]) -> st.SearchStrategy[dict[str, Any]]:
    mappings = {"inputMappings": MAPPINGS, "outputMappings": MAPPINGS}
    return st.fixed_dictionaries({}, optional=mappings).map(lambda chosen: attributes | chosen)


def _opening(inner: st.SearchStrategy[dict[str, Any]]) -> st.SearchStrategy[dict[str, Any]]:
    steps = _lists(inner)
    each = {"collection": "$.list", "item": "it"}
    return st.one_of(
        steps.map(lambda list_: {"type": "foreach", "iterationMapping": each, "steps": list_}),
        st.lists(steps, min_size=1, max_size=2).map(
            lambda lists: {"type": "parallel", "branches": [{"steps": list_} for list_ in lists]}
        ),
        steps.map(lambda list_: {"type": "choice", "choices": [{"condition": "1 == 1", "steps": list_}]}),
    ).flatmap(_mapped)


CALL = {"type": "task", "resourceArn": "acs:fc:::services/s/functions/f"}
SIMPLE = st.one_of(
    _mapped({"type": "pass"}),
    _mapped({"type": "wait", "duration": 5}),
    _mapped(CALL | {"retry": [{"errors": ["Bad"], "maxAttempts": 1}]}),
    _mapped(CALL | {"pattern": "waitForCallback"}),
    st.just({"type": "fail"}),
)
STEPS = _lists(st.recursive(SIMPLE, _opening, max_leaves=6))


def _named(steps: list[dict[str, Any]], path: str = "s") -> list[dict[str, Any]]:
    """The named steps, including those of nested lists."""
    named = []
    for number, step in enumerate(steps):
        name = f"{path}{number}"
        copy = {**step, "name": name}
        if "steps" in step:
            copy["steps"] = _named(step["steps"], f"{name}-")
        for key in ("branches", "choices"):
            if key in step:
                copy[key] = [
                    {**each, "steps": _named(each["steps"], f"{name}-{index}-")} for index, each in enumerate(step[key])
                ]
        named.append(copy)
    return named


def _next_message(world: World, data: st.DataObject) -> Message | None:
    """Any message that may arrive now, in any order."""
    if world.more:
        return Continue()
    waiting = [scope for scope in world.execution.scopes.values() if scope.wait.value == "task"]
    timers = [message for _, message in world._timers() if not isinstance(message, DeadlineReached)]
    possible: list[Any] = [*timers, Stop("Ended")]
    possible += [RetryLostCall(scope.scope_id, scope.wait_id, scope.attempt) for scope in waiting]
    possible += [call for call in world.calls if call.scope_id in world.execution.scopes] * 3
    chosen = data.draw(st.sampled_from(possible))
    if isinstance(chosen, Message):
        return chosen
    result = data.draw(RESULTS)
    if chosen.token is not None and data.draw(st.booleans()):
        world.report(result, chosen.token)
    else:
        world.reply(result, chosen)
    return None


@given(
    steps=STEPS,
    limits=st.builds(
        Limits,
        execution_data_bytes_max=st.sampled_from([300, 2_000, 100_000]),
        turn_steps_max=st.sampled_from([1, 3, 200]),
        foreach_concurrency_max=st.integers(1, 3),
        events_max=st.sampled_from([40, 200_000]),
    ),
    items=st.lists(st.text(max_size=20), max_size=4),
    data=st.data(),
)
def test_the_count_equals_the_measured_size(steps: Any, limits: Limits, items: list[str], data: st.DataObject) -> None:
    document = {"version": "v1", "type": "flow", "steps": _named(steps)}
    world = World(parse(dump_json(document), Limits()).flow, input={"list": items, "blob": "é" * 30}, limits=limits)
    world.start()
    for _ in range(25):
        assert world.execution.document_bytes <= limits.execution_data_bytes_max + 2 * len(world.execution.scopes)
        if not world.execution.is_running:
            assert world.execution.document_bytes == 0
            return
        message = _next_message(world, data)
        if message is not None:
            world.now_ms += 60_000
            world.tell(message)
