"""What the analysis says of data holds: random flows run in the machine, and it allows for every document.

Its errors follow from these documents, so they are true as well. The flows are those of the simulation.
"""

from random import Random

import pytest
import yaml

from flowserver.analysis.data_flow import FLOW_CONTEXT, DataFlow, StepFacts, built
from flowserver.analysis.proving import prove
from flowserver.analysis.shapes import EMPTY, UNKNOWN_OBJECT, Anything, Array, Document, Scalar, Shape
from flowserver.base.json_values import Json, load_json
from flowserver.base.limits import Limits
from flowserver.language.graph import Flow
from flowserver.language.parser import parse
from flowserver.machine.events import Event, EventType
from tests.conformance.cases import Reply
from tests.simulation.functions import ERRORS, KEYS
from tests.simulation.generator import Generator
from tests.support.world import World

SEEDS = range(150)
CALLEES = ("echo", "calc", "make", "many", "flaky", "slow", "odd", "ask", "slow_ask", "ocr:Read")
CHILDREN = ("child", "slow_child", "sub")
VALUES: tuple[Json, ...] = (0, 1, 2, "text", None, True, [1, 2], {"k": 1})


def allows(shape: Shape, value: Json) -> bool:
    """Whether the shape represents the value."""
    match shape:
        case Anything():
            return True
        case Array(item):
            return isinstance(value, list) and all(item is not None and allows(item, each) for each in value)
        case Document(parts, is_open):
            return (
                isinstance(value, dict)
                and (is_open or value.keys() <= parts.keys())
                and all(key in value for key, part in parts.items() if part.is_sure)
                and all(allows(part.shape, value[key]) for key, part in parts.items() if key in value)
            )
        case Scalar(kind):
            return kind == _kind(value)


def _kind(value: Json) -> str:
    if value is None or isinstance(value, (bool, str)):
        return "null" if value is None else "boolean" if isinstance(value, bool) else "text"
    return "number" if isinstance(value, (int, float)) else "none"


def _replies(random: Random) -> dict[str, tuple[Reply, ...]]:
    replies = {callee: tuple(_reply(random) for _ in range(5)) for callee in CALLEES}
    replies |= {child: (Reply(returns={"Name": "n", "Status": "Running"}), _failure(random)) for child in CHILDREN}
    return replies | {"bump": tuple(Reply(returns={"n": n}) for n in (1, 2, 3))}


def _reply(random: Random) -> Reply:
    if random.random() < 0.3:
        return _failure(random)
    made: dict[str, Json] = {key: random.choice(VALUES) for key in KEYS if random.random() < 0.5}
    return Reply(returns=made | {"items": [1, {"a": 2}], "list": []}, after_seconds=random.randint(0, 8))


def _failure(random: Random) -> Reply:
    return Reply(raises=random.choice(ERRORS))


def _facts(flow: Flow) -> dict[str, StepFacts]:
    """What is known of each step, by its name; the generator gives each its own."""
    given = UNKNOWN_OBJECT
    if flow.input_mappings is not None:
        given = built(flow.input_mappings, UNKNOWN_OBJECT, EMPTY, FLOW_CONTEXT)
    data = DataFlow(flow.root, given)
    return {
        flow.lists[list_id].steps[index].name: facts
        for list_id, known in data.lists.items()
        for index, facts in known.steps.items()
    }


def _is_allowed(facts: StepFacts, event: Event) -> bool:
    detail = load_json(event.detail)
    if event.type is EventType.STEP_ENTERED:
        return allows(facts.outer, detail["input"]) and allows(facts.local, detail["local"])
    return allows(facts.input, detail["input"])


@pytest.mark.parametrize("part", range(3))
def test_every_document_is_allowed_for(part: int) -> None:
    entered = 0
    for seed in SEEDS[part::3]:
        random = Random(seed)
        text = yaml.safe_dump(Generator(random).definition())
        flow = parse(text, Limits()).flow
        given: dict[str, Json] = {key: random.choice(VALUES) for key in KEYS if random.random() < 0.7}
        world = World(flow, input=given | {"list": [1, 2]}, replies=_replies(random))
        world.run()
        facts = _facts(flow)
        looked_at = [event for event in world.events if event.type in (EventType.STEP_ENTERED, EventType.STEP_STARTED)]
        assert [event for event in looked_at if not _is_allowed(facts[event.step_name], event)] == [], seed
        worst = prove(text, Limits()).worst_case
        assert worst is not None
        assert len(world.events) <= worst.events, seed
        assert len(world.calls) <= worst.calls, seed
        entered += len(looked_at)
    assert entered > 250
