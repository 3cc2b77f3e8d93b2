"""Layouts of graphs: of the examples, and of random flows with branches, loops, options and jumps."""

import json
import subprocess
from itertools import pairwise
from pathlib import Path
from random import Random
from typing import Any

import pytest

from flowserver.api.rest.models.definition_graphs import DefinitionGraph
from flowserver.base.limits import Limits
from flowserver.language.parser import parse
from flowserver.language.picture import picture_of
from tests.support.node import NODE

HERE = Path(__file__).parent
EXAMPLES = sorted((HERE.parents[1] / "examples").glob("*/flow.yaml"))
RANDOM_FLOWS = 30

Json = dict[str, Any]


def graph_of(definition: str) -> Json:
    parts = DefinitionGraph.parts_of(picture_of(parse(definition, Limits()).flow))
    return {name: list(values) for name, values in parts.items()}


def random_steps(random: Random, depth: int, names: list[int]) -> list[Json]:
    """A list of steps; `names` holds the number of the next name."""
    count = random.randint(1, 6 if depth else 9)
    own = [f"s{names[0] + number}" for number in range(count)]
    names[0] += count
    return [random_step(random, depth, name, own, names) for name in own]


def random_step(random: Random, depth: int, name: str, siblings: list[str], names: list[int]) -> Json:
    kind = random.choice(["pass", "task", "choice", "succeed", "fail", "parallel", "foreach"][: 5 if depth > 2 else 7])
    inner = lambda: random_steps(random, depth + 1, names)  # noqa: E731
    maybe_goto = lambda: {"goto": random.choice(siblings)} if random.random() < 0.6 else {}  # noqa: E731
    maybe_steps = lambda: {"steps": inner()} if depth < 3 and random.random() < 0.3 else {}  # noqa: E731
    step: Json = {"type": kind, "name": name}
    match kind:
        case "task":
            catch = [{"errors": ["FnF.ALL"], "goto": random.choice(siblings)}]
            step |= {"resourceArn": "acs:fc:::functions/f"} | ({"catch": catch} if random.random() < 0.4 else {})
        case "choice":
            options = [{"condition": f"$.a > {n}"} | maybe_goto() | maybe_steps() for n in range(random.randint(1, 4))]
            step |= {"choices": options} | ({"default": maybe_goto() | maybe_steps()} if random.random() < 0.7 else {})
        case "parallel":
            step |= {"branches": [{"steps": inner()} for _ in range(random.randint(1, 3))]}
        case "foreach":
            step |= {"iterationMapping": {"collection": "$.a", "item": "i"}, "steps": inner()}
    return step


def random_flow(seed: int) -> str:
    return json.dumps({"version": "v1", "type": "flow", "steps": random_steps(Random(seed), 0, [0])})


@pytest.fixture(scope="module")
def drawn() -> list[tuple[Json, Json]]:
    """Graphs with their layouts."""
    texts = [*(path.read_text() for path in EXAMPLES), *(random_flow(seed) for seed in range(RANDOM_FLOWS))]
    graphs = [graph_of(text) for text in texts]
    script = HERE / "browser" / "layouts.mjs"
    done = subprocess.run([NODE, script], input=json.dumps(graphs), capture_output=True, text=True, check=True)
    return list(zip(graphs, json.loads(done.stdout), strict=True))


def ancestors(graph: Json, node: int) -> set[int]:
    parent = graph["nodes"][node]["parent"]
    return set() if parent is None else {parent, *ancestors(graph, parent)}


def test_every_step_has_its_place_and_none_covers_another(drawn: list[tuple[Json, Json]]) -> None:
    for graph, layout in drawn:
        boxes = {box["id"]: box for box in layout["boxes"]}
        assert boxes.keys() == {node["id"] for node in graph["nodes"]}
        for box in boxes.values():
            assert box["x"] >= 0 and box["x"] + box["w"] <= layout["w"] + 1, graph["nodes"][box["id"]]
            assert box["y"] >= 0 and box["y"] + box["h"] <= layout["h"] + 1, graph["nodes"][box["id"]]
        for one in boxes.values():
            around = ancestors(graph, one["id"])
            for other in boxes.values():
                if other["id"] < one["id"]:
                    is_frame = other["id"] in around and graph["nodes"][other["id"]]["type"] != "choice"
                    assert is_within(one, other) if is_frame else not overlap(one, other), (one, other)


def is_within(inner: Json, outer: Json) -> bool:
    x, y = inner["x"] - outer["x"], inner["y"] - outer["y"]
    return bool(0 <= x <= outer["w"] - inner["w"] and outer["head"] <= y <= outer["h"] - inner["h"])


def overlap(one: Json, other: Json) -> bool:
    return bool(
        one["x"] < other["x"] + other["w"]
        and other["x"] < one["x"] + one["w"]
        and one["y"] < other["y"] + other["h"]
        and other["y"] < one["y"] + one["h"]
    )


def test_lines_are_orthogonal_and_cross_no_step(drawn: list[tuple[Json, Json]]) -> None:
    for graph, layout in drawn:
        frames = {node["id"] for node in graph["nodes"] if node["type"] in ("parallel", "foreach")}
        for line in layout["lines"]:
            for (x1, y1), (x2, y2) in pairwise(line["points"]):
                assert abs(x1 - x2) < 1 or abs(y1 - y2) < 1, line
                low, high = sorted((y1, y2))
                left, right = sorted((x1, x2))
                segment = {"x": left + 0.5, "y": low + 0.5, "w": right - left - 1, "h": high - low - 1}
                for box in layout["boxes"]:
                    solid = {**box, "h": box["head"]} if box["id"] in frames else box
                    assert not overlap(segment, solid), (line, graph["nodes"][box["id"]])


def test_control_goes_down_except_back(drawn: list[tuple[Json, Json]]) -> None:
    for graph, layout in drawn:
        boxes = {box["id"]: box for box in layout["boxes"]}
        for edge in graph["edges"]:
            source, target = edge["from"], edge["to"]
            if target is None or edge["kind"] == "catch" or target <= source:
                continue
            bottom = boxes[source]["y"] + boxes[source]["head"]
            assert boxes[target]["y"] >= bottom, (edge, graph["nodes"][source], graph["nodes"][target])
