"""Reads how a flow is simulated: the attribute `sim` of a flow test file."""

from collections.abc import Collection, Iterator
from typing import Final

from flowserver.flowtests.fault_names import FaultKind
from flowserver.flowtests.fields import SIMULATION
from flowserver.flowtests.property_names import OF_EVERY_FLOW
from flowserver.flowtests.property_reading import read_properties
from flowserver.flowtests.schema_reading import SchemaReader
from flowserver.flowtests.simulation_settings import SEED, SimulationSettings
from flowserver.language.attributes import AttributeReader, Attributes
from flowserver.language.nodes import ListNode, MapNode, Node, ScalarNode

_FAULTS: Final = tuple(map(str, FaultKind))


def read_simulation(reader: AttributeReader, node: MapNode, schemas: SchemaReader) -> SimulationSettings:
    """The settings; mistakes go into the report of the reader."""
    found = reader.read(node, SIMULATION)
    if found is None:
        return SimulationSettings()
    faults = frozenset(FaultKind(name) for name in _words(reader, found, "faults", _FAULTS))
    seed = reader.whole(found, "seed")
    given = found.get("inputSchema", MapNode)
    return SimulationSettings(
        runs=reader.whole(found, "runs"),
        seed=SEED if seed is None else seed,
        faults=faults if "faults" in found.written else frozenset(FaultKind),
        ignored=frozenset(_words(reader, found, "ignore", OF_EVERY_FLOW)),
        sizes=tuple(_sizes(reader, found)) or None,
        input_schema=None if given is None else schemas.read_for_inputs(given),
        properties=read_properties(reader, found, schemas, is_simulation=True),
    )


def _items(found: Attributes, name: str) -> tuple[Node, ...]:
    node = found.get(name, ListNode)
    return () if node is None else tuple(node.items)


def _words(reader: AttributeReader, found: Attributes, name: str, words: Collection[str]) -> Iterator[str]:
    for item in _items(found, name):
        text = item.text if isinstance(item, ScalarNode) else ""
        if text in words:
            yield text
        else:
            message = f"`{name}` is a list of {', '.join(words)}"
            reader.report.error("bad-value", item.span, message, reader.work.similar(text, words))


def _sizes(reader: AttributeReader, found: Attributes) -> Iterator[int]:
    most = reader.limits.foreach_items_max
    for item in _items(found, "collections"):
        value = item.value if isinstance(item, ScalarNode) else None
        if isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= most:
            yield value
        else:
            reader.report.error("bad-value", item.span, f"`collections` is a list of sizes from 0 to {most}")
