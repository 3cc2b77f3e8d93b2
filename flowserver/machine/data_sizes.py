"""The size rule: how many bytes of data one step may hold, as compact JSON, and how deep they may nest.

Counts piece by piece and stops at the limit: a mapping list can name one large document a thousand times, which
costs nothing until it is written out.
"""

from collections.abc import Iterator, Sequence
from enum import Enum, auto
from itertools import islice

from flowserver.base.json_values import DEPTH_MAX, LEVELS_MAX, Json, JsonObject, depth_of, dump_json_bytes, json_bytes

PIECE = 16
"""Elements written out at once; their number times the limit bounds the memory that counting takes."""

PLAIN_BYTES = 2_048
"""A document of more bytes is measured value by value."""

LARGE_BYTES = 512
"""Values of at least this many bytes are remembered."""

REMEMBERED_MAX = 64
"""The most values that are remembered; a forgotten value is measured again."""


def fits(bytes_max: int, *documents: JsonObject | list[Json]) -> bool:
    """Whether the documents together hold at most `bytes_max` bytes."""
    size = 0
    for document in documents:
        for piece in _texts(document):
            size += len(piece)
            if size > bytes_max:
                return False
    return True


def measure_plain(bytes_max: int, documents: Sequence[JsonObject | list[Json]]) -> int | None:
    """How many bytes the documents hold together, if a quick check shows that they break no rule.

    It succeeds for small documents, as most are: each is written out once, and its opening brackets, those inside
    texts included, bound its depth by `DEPTH_MAX`. None decides nothing; use `Sizes` then.
    """
    size = 0
    for document in documents:
        if len(document) > PIECE:
            return None
        text = dump_json_bytes(document)
        size += len(text)
        if size > bytes_max or len(text) > PLAIN_BYTES or text.count(b"{") + text.count(b"[") > DEPTH_MAX:
            return None
    return size


class Excess(Enum):
    """Which rule documents break."""

    BYTES = auto()
    DEPTH = auto()


class Sizes:
    """Measures documents and remembers large values, so that a value which many documents share is written out once.

    A value is known by its identity: documents are never edited in place. It is held as long as it is remembered, or
    another value could get its identity.
    """

    def __init__(self) -> None:
        self.known: dict[int, tuple[Json, int, int]] = {}
        """By identity the value, its bytes, and its depth or a number above it that is within the limit."""
        self.lasting: set[int] = set()
        """Identities of values that the execution holds between turns, too: the input of an open foreach."""

    def between_turns(self) -> "Sizes | None":
        """The sizes to remember while an execution waits: none whose value would be kept in memory for it alone."""
        if self.known:
            self.known = {key: known for key, known in self.known.items() if key in self.lasting}
        return self if self.known else None

    def __deepcopy__(self, _: object) -> "Sizes":
        return Sizes()  # copies of values have other identities

    def measure(self, bytes_max: int, documents: Sequence[JsonObject | list[Json]]) -> int | Excess:
        """How many bytes the documents hold together, or the rule that they break; BYTES if they break both.

        They may hold `bytes_max` bytes, and none may nest deeper than `DEPTH_MAX` levels.
        """
        size = depth = 0
        for part_size, part_depth in self._parts(bytes_max, documents):
            size += part_size
            depth = max(depth, part_depth)
            if size > bytes_max:
                return Excess.BYTES
        return Excess.DEPTH if depth > LEVELS_MAX else size

    def weigh(self, bytes_max: int, value: Json) -> int:
        """How many bytes a value holds; or a number above `bytes_max`."""
        return self._weigh(bytes_max, value)[0]

    def _parts(self, bytes_max: int, documents: Sequence[JsonObject | list[Json]]) -> Iterator[tuple[int, int]]:
        """Sizes and depths of parts of the documents; the sizes add up to those of all."""
        for document in documents:
            if isinstance(document, dict):
                yield from self._entries(bytes_max, document)
            else:
                yield self._weigh(bytes_max, document)

    def _entries(self, bytes_max: int, document: JsonObject) -> Iterator[tuple[int, int]]:
        """Sizes and depths of a document's entries; the sizes add up to its own."""
        yield (1 if document else 2), 1  # two brackets, but the first entry needs no comma
        piece: JsonObject = {}
        for key, value in document.items():
            if isinstance(value, (dict, list)) or (isinstance(value, str) and len(value) >= LARGE_BYTES):
                size, depth = self._weigh(bytes_max, value)
                yield json_bytes(key) + size + 2, depth + 1
            else:
                piece[key] = value
                if len(piece) == PIECE:
                    yield json_bytes(piece) - 1, 1
                    piece = {}
        if piece:
            yield json_bytes(piece) - 1, 1

    def _weigh(self, bytes_max: int, value: Json) -> tuple[int, int]:
        """The size of a value, and its depth or a number above it that is within the limit.

        A value over the limit is written out only until the limit is passed.
        """
        known = self.known.get(id(value))
        if known is None:
            size = brackets = 0
            for piece in _texts(value):
                size += len(piece)
                brackets += _brackets(piece)
                if size > bytes_max:
                    return size, 0
            depth = brackets if brackets <= DEPTH_MAX else depth_of(value, LEVELS_MAX + 1)
            if size < LARGE_BYTES:
                return size, depth
            known = value, size, depth
            if len(self.known) == REMEMBERED_MAX:
                del self.known[next(iter(self.known))]
        else:
            del self.known[id(value)]
        self.known[id(value)] = known  # now the most recently used
        return known[1:]


def _brackets(text: bytes) -> int:
    return text.count(b"{") + text.count(b"[")


def _texts(value: Json) -> Iterator[bytes]:
    """Texts of the pieces of a value; their lengths add up to that of its own."""
    if not isinstance(value, (dict, list)) or len(value) <= PIECE:
        yield dump_json_bytes(value)
        return
    yield b"["  # two brackets, but the first piece needs no comma
    for piece in _pieces(value):
        yield dump_json_bytes(piece)[1:]  # without its brackets, with a comma


def _pieces(document: JsonObject | list[Json]) -> Iterator[JsonObject | list[Json]]:
    if isinstance(document, list):
        yield from (document[start : start + PIECE] for start in range(0, len(document), PIECE))
        return
    entries = iter(document.items())
    while piece := dict(islice(entries, PIECE)):
        yield piece
