"""Large values of histories (*parts*). Each is stored once, when an event first shows it."""

from collections import OrderedDict
from typing import Any, NamedTuple

from cachetools import LRUCache
from sqlalchemy import Connection, bindparam, insert, select

from flowserver.base.json_values import Json, dump_json
from flowserver.store.schema.tables import history_parts

REMEMBERED_MAX = 64
"""How many stored values an execution remembers. A value that is forgotten is stored again when it occurs again."""

REMEMBERED_BYTES_MAX = 524_288
"""Their size together as JSON, not counting the newest: enough for all values of two steps. Older values are mostly
replies that do not occur again; remembering them would only keep them in memory."""

READ_AHEAD_MAX = 16
"""Values that a reader of histories keeps; each has about 256 KiB at most."""


class PartId(NamedTuple):
    """The key of a part within its execution."""

    event_id: int
    number: int


class KnownParts:
    """The large values of an execution that are stored already, by object identity: documents are never edited."""

    def __init__(self) -> None:
        self._known: OrderedDict[int, tuple[Json, PartId, int]] = OrderedDict()
        self.held_bytes = 0
        """Size of the values as JSON."""

    def find(self, value: Json) -> PartId | None:
        """The part that holds the value, if it is known."""
        known = self._known.get(id(value))
        if known is None:
            return None
        self._known.move_to_end(id(value))
        return known[1]

    def note(self, value: Json, part_id: PartId, size: int) -> None:
        """Remember that a value of `size` bytes is stored as that part. The value must not be known already.

        The reference keeps the object alive, so that no other object can get its identity.
        """
        self._known[id(value)] = value, part_id, size
        self.held_bytes += size
        while len(self._known) > REMEMBERED_MAX or (self.held_bytes > REMEMBERED_BYTES_MAX and len(self._known) > 1):
            _, (_, _, forgotten) = self._known.popitem(last=False)
            self.held_bytes -= forgotten


def part_row(execution_id: str, part_id: PartId, value: Json) -> dict[str, Any]:
    """The row of a part."""
    return {"execution_id": execution_id, **part_id._asdict(), "value": dump_json(value)}


class PartReader:
    """Reads parts a few at a time and keeps them for the events that follow."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._read: LRUCache[tuple[str, PartId], str | None] = LRUCache(READ_AHEAD_MAX)

    def text(self, execution_id: str, part_id: PartId) -> str | None:
        """The part's JSON text; None if there is none."""
        key = execution_id, part_id
        if key not in self._read:
            values = {"b_id": execution_id, "b_event": part_id.event_id, "b_number": part_id.number}
            self._read[key] = self._connection.execute(_SELECT, values).scalar_one_or_none()
        return self._read[key]


INSERT_PART = insert(history_parts)
_SELECT = select(history_parts.c.value).where(
    history_parts.c.execution_id == bindparam("b_id"),
    history_parts.c.event_id == bindparam("b_event"),
    history_parts.c.number == bindparam("b_number"),
)
