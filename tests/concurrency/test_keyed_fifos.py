"""Queues by one key and by two, served round robin."""

from flowserver.concurrency.keyed_fifos import KeyedFifos, NestedFifos


def nested(*pairs: str) -> NestedFifos[str]:
    """Queues that hold each pair `xy`, appended under the outer key `x` and the inner key `y`."""
    fifos: NestedFifos[str] = NestedFifos()
    for number, (outer, inner) in enumerate(pairs):
        fifos.append((outer, inner), f"{outer}{inner}{number}")
    return fifos


def test_keys_take_turns() -> None:
    fifos: KeyedFifos[str] = KeyedFifos()
    for number, key in enumerate("aaab"):
        fifos.append(key, f"{key}{number}")
    assert [fifos.pop() for _ in range(len(fifos))] == ["a0", "b3", "a1", "a2"]


def test_outer_keys_take_turns_and_within_them_the_inner_ones() -> None:
    fifos = nested("ax", "ax", "ay", "az", "bx")
    assert list(fifos) == ["ax0", "ax1", "ay2", "az3", "bx4"]
    assert [fifos.pop() for _ in range(len(fifos))] == ["ax0", "bx4", "ay2", "az3", "ax1"]
    assert not fifos


def test_what_is_put_back_comes_first_again() -> None:
    fifos = nested("ax", "ay", "bx")
    for outer, inner in (("a", "x"), ("b", "x")):
        item = fifos.pop()
        fifos.put_back((outer, inner), item)
        assert fifos.pop() == item
    assert (len(fifos), fifos.pop()) == (1, "ay1")


def test_whether_others_wait() -> None:
    fifos = nested("ax", "bx")
    assert fifos.first == "x"
    assert not fifos.has_other_than("x")
    assert fifos.has_other_than("y")
    fifos.append(("a", "y"), "")
    assert fifos.has_other_than("x")
