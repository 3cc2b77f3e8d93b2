"""Large bodies are made and sent in pieces.

Making or sending one text of some megabytes takes milliseconds, in which no other thread of the process runs.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

from starlette.types import Send

from flowserver.base.json_values import Json, dump_json_bytes
from flowserver.concurrency.background_throttle import yield_to_writer

PIECE_BYTES: Final = 65_536
"""As much as uvicorn takes of a body before it lets the sender wait."""

Header = tuple[bytes, bytes]


def page_in_pieces(page: Mapping[str, Json | Iterator[Json]]) -> list[bytes]:
    """A JSON object whose lists are made element by element, in the background."""
    return in_pieces(_texts(page))


def in_pieces(texts: Iterable[bytes]) -> list[bytes]:
    """The texts, joined: a piece but the last has half of `PIECE_BYTES` at least, and at most a text more than that."""
    pieces: list[bytes] = []
    gathered: list[bytes] = []
    size = 0
    for text in texts:
        gathered.append(text)
        size += len(text)
        if size >= PIECE_BYTES // 2:
            pieces.append(b"".join(gathered))
            gathered, size = [], 0
    return [*pieces, b"".join(gathered)]


def _texts(page: Mapping[str, Json | Iterator[Json]]) -> Iterator[bytes]:
    separator = b"{"
    for name, value in page.items():
        yield separator + dump_json_bytes(name) + b":"
        if isinstance(value, (list, Iterator)):
            yield from _elements(value)
        else:
            yield dump_json_bytes(value)
        separator = b","
    yield b"}" if separator == b"," else b"{}"


def _elements(values: Iterable[Json]) -> Iterator[bytes]:
    separator = b"["
    for value in values:
        yield separator + dump_json_bytes(value)
        separator = b","
        yield_to_writer()
    yield b"]" if separator == b"," else b"[]"


async def send_pieces(send: Send, status: int, headers: Sequence[Header], pieces: Sequence[bytes]) -> None:
    """Send a whole answer: the status, the headers with a content-length, and the pieces of the body (at least one)."""
    length = (b"content-length", b"%d" % sum(map(len, pieces)))
    await send({"type": "http.response.start", "status": status, "headers": [*headers, length]})
    for piece in pieces[:-1]:
        await send({"type": "http.response.body", "body": piece, "more_body": True})
    await send({"type": "http.response.body", "body": pieces[-1]})
