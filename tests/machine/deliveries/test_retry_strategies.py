"""The retry times of a failed delivery, and valid destinations."""

from itertools import count

import pytest

from flowserver.machine.deliveries.destinations import (
    FunctionAddress,
    NoDestination,
    QueueAddress,
    TopicAddress,
    WebAddress,
    read_destination,
)
from flowserver.machine.deliveries.retry_strategies import Strategy, next_attempt_at


def pauses(strategy: Strategy, chance: float) -> list[int]:
    """All pauses in seconds, until the delivery is given up."""
    found: list[int] = []
    for attempt in count(1):
        at = next_attempt_at(strategy, attempt, 1_000_000, chance)
        if at is None:
            return found
        found.append((at - 1_000_000) // 1000)
    raise AssertionError


@pytest.mark.parametrize(("chance", "seconds"), [(0, 10), (0.25, 12), (1, 20)])
def test_backoff_takes_three_pauses_of_ten_to_twenty_seconds(chance: float, seconds: int) -> None:
    assert pauses(Strategy.BACKOFF, chance) == [seconds] * 3


@pytest.mark.parametrize("chance", [0, 1])
def test_exponential_decay_takes_a_day(chance: float) -> None:
    found = pauses(Strategy.EXPONENTIAL_DECAY, chance)
    assert len(found) == 176
    assert found[:12] == [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 512, 512]
    assert set(found[10:]) == {512}
    assert 23.5 * 3600 < sum(found) <= 24 * 3600


@pytest.mark.parametrize("strategy", Strategy)
def test_an_attempt_beyond_the_limit_is_the_last(strategy: Strategy) -> None:
    """Such as another attempt after a node died during the last."""
    assert next_attempt_at(strategy, 1000, 0, 0) is None


@pytest.mark.parametrize(
    ("text", "destination"),
    [
        ("http://h/p?q=1", WebAddress("http://h/p?q=1")),
        ("HTTPS://h", WebAddress("HTTPS://h")),
        ("acs:mns:cn-hangzhou:123:queues/q-1", QueueAddress("q-1")),
        ("acs:mns:::/queues/1q/messages", QueueAddress("1q")),
        ("acs:mns:cn-hangzhou:123:/topics/t/messages", TopicAddress("t")),
        ("acs:mns:::topics/t", TopicAddress("t")),
        ("acs:fc:::services/s/functions/f", FunctionAddress("s", "", "f")),
        ("acs:fc:cn-x:1:services/s.prod/functions/f", FunctionAddress("s", "prod", "f")),
        ("acs:fc:::services/s.3/functions/f", FunctionAddress("s", "3", "f")),
    ],
)
def test_valid_destinations(text: str, destination: object) -> None:
    assert read_destination(text) == destination


@pytest.mark.parametrize(
    "text",
    [
        "",
        "http://",
        "ftp://h",
        "mail:directmail:a@b",
        "acs:mns:::queues/",
        "acs:mns:::queues/-q",
        "acs:mns:::queues/q/",
        "acs:mns:::/queues/q/messages/m",
        "acs:mns:::/queues/q\n",
        f"acs:mns:::queues/{'q' * 121}",
        "acs:mns:a b::queues/q",
        "acs:fc:::functions/f",
        "acs:fc:::services/s/functions/",
        "acs:eventbridge:::eventbuses/b",
    ],
)
def test_invalid_destinations(text: str) -> None:
    with pytest.raises(NoDestination, match="write"):
        read_destination(text)
