"""When a node counts as dead."""

from flowserver.machine.cluster.dead_nodes import SILENT_LOOKS, Silence


def test_a_node_is_silent_when_its_count_stays_the_same_for_several_looks() -> None:
    silence = Silence()
    for look in range(SILENT_LOOKS):
        assert silence.look({"beats": look, "still": 7}) == []
    assert silence.look({"beats": 99, "still": 7}) == ["still"]
    assert silence.look({"beats": 100, "still": 8}) == []
    assert silence.look({"still": 8}) == []


def test_no_node_is_silent_without_looks() -> None:
    """The database was down for an hour, so no node sent a heartbeat. The first look after it finds no node silent."""
    silence = Silence()
    assert silence.look({"other": 7}) == []
    assert silence.look({"other": 7}) == []
