"""The version that a start runs, determined by weights and the execution's id alone."""

import pytest

from flowserver.machine.versions.routing import (
    Route,
    Routing,
    is_alias_name,
    is_qualifier,
    is_version,
    no_version,
    routing_of,
    version_in,
)

IDS = [f"019b7d3e-2f6a-7c51-9d0f-{number:012x}" for number in range(10_000)]


@pytest.mark.parametrize("weight", [0, 1, 10, 50, 99, 100])
def test_starts_are_divided_by_weight(weight: int) -> None:
    routing = routing_of([Route(1, 100 - weight), Route(2, weight)])
    new = sum(routing.choose(execution_id) == 2 for execution_id in IDS)
    assert abs(new - 100 * weight) <= 100  # one percent of the ids; the ids and so the count are always the same
    assert weight not in (0, 100) or new == 100 * weight


def test_a_repeated_start_draws_the_same_version() -> None:
    routing = Routing(1, 2, 50)
    assert [routing.choose(each) for each in IDS[:100]] == [routing.choose(each) for each in IDS[:100]]


def test_more_weight_moves_no_start_back() -> None:
    """While a new version's weight grows, an id that drew it draws it again."""
    ten, twenty = Routing(1, 2, 10), Routing(1, 2, 20)
    assert all(twenty.choose(each) == 2 for each in IDS if ten.choose(each) == 2)


def test_routes_are_shown_as_they_were_given() -> None:
    for routes in ([Route(7, 100)], [Route(3, 90), Route(4, 10)], [Route(4, 0), Route(3, 100)]):
        assert list(routing_of(routes).routes) == routes
    assert routing_of([Route(7, 100)]).choose("x") == 7


@pytest.mark.parametrize(
    ("routes", "part"),
    [
        ([], "one or two versions"),
        ([Route(1, 50), Route(2, 25), Route(3, 25)], "one or two versions"),
        ([Route(1, 99)], "come to 100"),
        ([Route(1, 50), Route(2, 51)], "come to 100"),
        ([Route(1, -10), Route(2, 110)], "come to 100"),
        ([Route(1, 50), Route(1, 50)], "must differ"),
    ],
)
def test_invalid_routes(routes: list[Route], part: str) -> None:
    with pytest.raises(ValueError, match=part):
        routing_of(routes)


@pytest.mark.parametrize(
    ("text", "version", "may_name_an_alias", "may_qualify"),
    [
        ("1", 1, False, True),
        ("999999999", 999_999_999, False, True),
        ("0", None, False, False),
        ("007", None, False, False),
        ("9999999999", None, False, False),
        ("prod", None, True, True),
        ("v1", None, True, True),
        ("_", None, True, True),
        ("LATEST", None, False, True),
        ("1a", None, False, False),
        ("", None, False, False),
        ("a b", None, False, False),
        ("a\0", None, False, False),
        ("٣", None, False, False),
    ],
)
def test_qualifiers(text: str, version: int | None, may_name_an_alias: bool, may_qualify: bool) -> None:
    assert version_in(text) == version
    assert is_alias_name(text) is may_name_an_alias
    assert is_qualifier(text) is may_qualify
    assert is_version(text) == (text.isascii() and text.isdigit())


def test_a_refusal_says_whether_a_version_or_an_alias_is_missing() -> None:
    assert (no_version("f", "7").code, no_version("f", "7").message) == (
        "FlowVersionNotExists",
        "flow f has no version 7",
    )
    refused = no_version("f", "a" * 1_000)
    assert (refused.code, refused.message) == ("FlowAliasNotExists", f"flow f has no alias {'a' * 128}")
