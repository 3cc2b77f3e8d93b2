"""When a node counts as dead: when its count of beats has not changed for several reads. Clocks have no part in it."""

from collections.abc import Mapping
from typing import Final

SILENT_LOOKS: Final = 5


class Silence:
    """Counts the reads since the beats of each node last changed."""

    def __init__(self) -> None:
        self._seen: dict[str, tuple[int, int]] = {}

    def look(self, beats: Mapping[str, int]) -> list[str]:
        """Compare the beats of all nodes, by id, with the last read; returns the ids that are silent for too long."""
        before, self._seen = self._seen, {}
        for node_id, count in beats.items():
            last, looks = before.get(node_id, (-1, 0))
            self._seen[node_id] = (count, looks + 1 if count == last else 0)
        return [node_id for node_id, (_, looks) in self._seen.items() if looks >= SILENT_LOOKS]
