"""Task tokens: a token of this server is read back, any other text is refused."""

import base64

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from flowserver.base.task_tokens import TOKEN_CHARACTERS_MAX, TaskTokens, TokenClaim

EXECUTION = "0197a1b2-0000-7000-8000-00000000c0de"
tokens = TaskTokens(b"a key of at least 16 bytes")
others = TaskTokens(b"another key of 16 bytes or more")
TOKEN = tokens.make(EXECUTION, 3, 17, None)


def encode(text: str) -> str:
    return base64.urlsafe_b64encode(text.encode()).decode().rstrip("=")


def decode(token: str) -> str:
    return base64.urlsafe_b64decode(token + "=" * (-len(token) % 4)).decode()


@pytest.mark.parametrize("wait_id", [None, 0, 1, 10**9])
def test_a_token_identifies_its_wait(wait_id: int | None) -> None:
    token = tokens.make(EXECUTION, 3, 17, wait_id)
    assert tokens.read(token) == TokenClaim(EXECUTION, 3, 17, wait_id)
    assert token == tokens.make(EXECUTION, 3, 17, wait_id)
    assert len(token) <= TOKEN_CHARACTERS_MAX
    assert token.isascii()
    assert not set(token) & set("+/= ")  # safe in a URL without escapes


def test_different_waits_have_different_tokens() -> None:
    claims = [(EXECUTION, 3, 17, None), (EXECUTION, 31, 7, None), (EXECUTION, 3, 17, 1), ("e", 3, 17, None)]
    assert len({tokens.make(*claim) for claim in claims}) == 4


def test_padding_that_a_client_adds_is_harmless() -> None:
    for token in (TOKEN, tokens.make(EXECUTION, 10, 17, None), tokens.make(EXECUTION, 100, 17, None)):
        assert tokens.read(token + "=" * (-len(token) % 4)) is not None


def test_another_server_s_token_is_refused() -> None:
    assert others.read(TOKEN) is None
    assert tokens.read(others.make(EXECUTION, 3, 17, None)) is None


def test_a_cell_reads_its_tokens_also_of_the_time_when_it_had_another_name_or_none() -> None:
    key = b"a key of at least 16 bytes"
    named, renamed = TaskTokens(key, "north"), TaskTokens(key, "n-2")
    made = named.make(EXECUTION, 3, 17, 5)
    for reader in (tokens, named, renamed):
        assert reader.read(TOKEN) == TokenClaim(EXECUTION, 3, 17, None)
        assert reader.read(made) == TokenClaim(EXECUTION, 3, 17, 5)
    assert len(TaskTokens(key, "n" * 63).make("e" * 36, 10**9, 10**9, 10**9)) <= TOKEN_CHARACTERS_MAX


def test_another_cell_says_where_a_token_belongs() -> None:
    made = TaskTokens(b"a key of at least 16 bytes", "north").make(EXECUTION, 3, 17, None)
    south = TaskTokens(b"another key of 16 bytes or more", "south")
    assert south.read(made) is None
    assert south.why_unknown(made) == "is a task token of the cell north, not of the cell south"
    assert others.why_unknown(made) == "is a task token of the cell north, not of this server"


@pytest.mark.parametrize(
    "token",
    [
        TOKEN,
        others.make(EXECUTION, 3, 17, None),
        "no base64 at all!",
        encode("v2#North#e#1#2##"),
        encode("v2##e#1#2##"),
        encode("v2#south#e#1#2##0"),
        encode("v2#north\nsouth#e#1#2##"),
        encode("v2#" + "n" * 64 + "#e#1#2##"),
    ],
)
def test_any_other_text_names_no_cell(token: str) -> None:
    south = TaskTokens(b"a further key of 16 bytes or more", "south")
    assert south.read(token) is None
    assert south.why_unknown(token) == "is not a task token of this server"


@pytest.mark.parametrize("position", range(0, len(decode(TOKEN)), 7))
def test_a_token_with_a_changed_payload_is_refused(position: int) -> None:
    text = decode(TOKEN)
    changed = text[:position] + ("1" if text[position] == "0" else "0") + text[position + 1 :]
    assert tokens.read(encode(changed)) is None


@pytest.mark.parametrize(
    "forged",
    [
        "",
        "=",
        "====",
        "no base64 at all!",
        "中文",
        "\x00",
        "\ud800",
        TOKEN[:-1],
        TOKEN[1:],
        TOKEN + "A",
        TOKEN[:20] + "=" + TOKEN[20:],
        TOKEN[:20] + "\n" + TOKEN[20:],
        encode("#"),
        encode("v1#e#1#2##"),
        encode("v1#e#1#2#"),
        encode(decode(TOKEN).rpartition("#")[0]),
        encode(decode(TOKEN) + "0"),
        encode(decode(TOKEN).replace("#17#", "#17#1")),
        encode("ü" * 20),
        TOKEN * 20,
        "A" * 100_000,
    ],
)
def test_a_forged_token_is_refused(forged: str) -> None:
    assert tokens.read(forged) is None


@given(st.text(max_size=200))
@example("v1#e#1#2##")
def test_no_random_text_is_a_token(text: str) -> None:
    assert tokens.read(text) is None
    assert tokens.read(encode(text.encode("utf-8", "replace").decode())) is None
