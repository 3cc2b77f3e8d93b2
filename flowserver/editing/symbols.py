"""The outline of a file for editors: steps within steps, and tests."""

from collections.abc import Iterator
from dataclasses import dataclass

from flowserver.editing.files import Definition, EditedFile, FlowTest
from flowserver.editing.grammar import attribute_of, text_of
from flowserver.editing.outline import StepEntry, StepList
from flowserver.editing.step_names import name_extent
from flowserver.editing.texts import Extent
from flowserver.language.nodes import ListNode, MapNode

GROUP = "group"
TEST = "test"


@dataclass(frozen=True, slots=True)
class Symbol:
    """One entry; `kind` is a type of step, GROUP for a list of steps, or TEST."""

    name: str
    detail: str
    kind: str
    extent: Extent
    name_extent: Extent
    inner: tuple["Symbol", ...] = ()


def symbols_of(file: EditedFile) -> list[Symbol]:
    """The outline."""
    if isinstance(file, Definition):
        root = file.outline.lists[:1]
        return [_step(file, step) for steps in root for step in steps.steps]
    return list(_tests(file)) if isinstance(file, FlowTest) else []


def _step(file: Definition, step: StepEntry) -> Symbol:
    if step.type == "choice" or len(step.lists) > 1:
        inner = tuple(_group(file, steps) for steps in step.lists)
    else:
        inner = tuple(_step(file, each) for steps in step.lists for each in steps.steps)
    name = name_extent(file, step)
    return Symbol(step.name or "(no name)", _detail(step), step.type, _around(file, step.node, name), name, inner)


def _group(file: Definition, steps: StepList) -> Symbol:
    extent = file.extent(steps.node)
    inner = tuple(_step(file, step) for step in steps.steps)
    return Symbol(steps.label or "steps", "", GROUP, extent, Extent(extent.start, extent.start), inner)


def _detail(step: StepEntry) -> str:
    called = text_of(attribute_of(step.node, "resourceArn")) or text_of(attribute_of(step.node, "action"))
    return " ".join(filter(None, (step.type, called.rpartition(":")[2] if called.startswith("acs:") else called)))


def _tests(file: FlowTest) -> Iterator[Symbol]:
    readable = file.readable
    tree = None if readable is None else readable.tree
    tests = None if tree is None else attribute_of(tree.root, "tests")
    for node in tests.items if isinstance(tests, ListNode) else ():
        name = attribute_of(node, "name")
        if isinstance(node, MapNode) and name is not None:
            own = file.extent(name)
            yield Symbol(text_of(name) or "(no name)", "", TEST, _around(file, node, own), own)


def _around(file: EditedFile, node: MapNode, name: Extent) -> Extent:
    """Where an object is; an editor wants the place of its name in it, which an alias can have elsewhere."""
    extent = file.extent(node)
    return extent if extent.start <= name.start and name.end <= extent.end else name
