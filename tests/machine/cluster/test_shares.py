"""The division of work among nodes."""

from flowserver.machine.cluster.shares import Share


def test_nodes_divide_the_executions() -> None:
    nodes = ["a", "b", "c"]
    shares = [Share.of(name, nodes) for name in nodes]
    owners = [[share.owns(f"execution {number}") for share in shares].count(True) for number in range(300)]
    assert set(owners) == {1}
    assert all(sum(share.owns(f"execution {number}") for number in range(300)) > 60 for share in shares)


def test_a_node_without_others_owns_all() -> None:
    assert Share.of("alone", []).owns("anything")


def test_a_leaving_node_has_a_share_of_its_own_until_it_has_left() -> None:
    assert Share.of("leaving", ["a", "b"]) == Share(2, 3)
