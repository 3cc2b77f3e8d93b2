"""The size rule: how many bytes of data one step may hold, as compact JSON, and how deep they may nest.

Counts piece by piece and stops at the limit: a mapping list can name one large document a thousand times, which
costs nothing as long as nobody writes it out.
"""

from collections.abc import Iterator, Sequence
from itertools import islice

from flowserver.base.json_values import DEPTH_MAX, Json, JsonObject, dump_json_bytes, json_bytes

PIECE = 16
"""Elements written out at once; their number times the limit bounds the memory that counting takes."""


def measure(bytes_max: int, *documents: JsonObject | list[Json]) -> int | None:
    """How many bytes the documents hold together; None if that is more than `bytes_max`."""
    size = 0
    for document in documents:
        for piece in _piece_sizes(document):
            size += piece
            if size > bytes_max:
                return None
    return size


def fits(bytes_max: int, *documents: JsonObject | list[Json]) -> bool:
    """Whether the documents together hold at most `bytes_max` bytes."""
    return measure(bytes_max, *documents) is not None


def measure_plain(bytes_max: int, documents: Sequence[JsonObject | list[Json]]) -> int | None:
    """How many bytes the documents hold together, if it is seen at a glance that they may.

    It is seen of small documents, as most are: each is written out once, and its opening brackets, those inside of
    texts included, bound its depth by `DEPTH_MAX`. None says nothing.
    """
    size = 0
    for document in documents:
        if len(document) > PIECE:
            return None
        text = dump_json_bytes(document)
        size += len(text)
        if size > bytes_max or text.count(b"{") + text.count(b"[") > DEPTH_MAX:
            return None
    return size


def _piece_sizes(document: JsonObject | list[Json]) -> Iterator[int]:
    """Sizes of the pieces of a document; they add up to its own."""
    if len(document) <= PIECE:
        yield json_bytes(document)
        return
    yield 1  # two brackets, but the first piece needs no comma
    for piece in _pieces(document):
        yield json_bytes(piece) - 1  # without its brackets, with a comma


def _pieces(document: JsonObject | list[Json]) -> Iterator[JsonObject | list[Json]]:
    if isinstance(document, list):
        yield from (document[start : start + PIECE] for start in range(0, len(document), PIECE))
        return
    entries = iter(document.items())
    while piece := dict(islice(entries, PIECE)):
        yield piece
