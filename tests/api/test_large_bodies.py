"""Pages in pieces: the same JSON, no piece much larger than the others."""

import json

import pytest
from starlette.types import Message

from flowserver.api.large_bodies import PIECE_BYTES, page_in_pieces, send_pieces
from flowserver.base.json_values import Json, JsonObject


@pytest.mark.parametrize(
    "page", [{}, {"a": []}, {"a": [1], "b": None}, {"a": [{"x": []}, "ä"], "n": {"l": [1, 2]}, "b": [0, 1, 2]}]
)
def test_the_pieces_are_the_json_of_the_page(page: JsonObject) -> None:
    assert json.loads(b"".join(page_in_pieces(page))) == page


def test_single_elements_become_a_list() -> None:
    shown: dict[str, Json] = {"a": [0, 1, 2]}
    assert page_in_pieces({"a": iter(range(3))}) == page_in_pieces(shown)


def test_pieces_are_of_one_size_for_all_sizes_of_elements() -> None:
    items: list[Json] = ["x" * size for size in (10, 1_000, PIECE_BYTES // 3) * 50]
    shown: dict[str, Json] = {"items": items}
    sizes = [len(piece) for piece in page_in_pieces(shown)]
    assert min(sizes[:-1]) >= PIECE_BYTES // 2 and max(sizes) <= PIECE_BYTES
    assert len(sizes) > 15


async def test_the_length_is_known_first() -> None:
    sent: list[Message] = []

    async def send(message: Message) -> None:
        sent.append(message)

    await send_pieces(send, 201, [(b"a", b"b")], [b"one", b"two", b"three"])
    assert (sent[0]["status"], sent[0]["headers"]) == (201, [(b"a", b"b"), (b"content-length", b"11")])
    assert [each["body"] for each in sent[1:]] == [b"one", b"two", b"three"]
    assert [each.get("more_body", False) for each in sent[1:]] == [True, True, False]
