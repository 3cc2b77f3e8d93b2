"""Which folds over histories a node keeps."""

from dataclasses import dataclass

from flowserver.base.limits import Limits
from flowserver.machine.event_details import HistoryEvent
from flowserver.operations.fold_cache import KeptFolds


@dataclass
class Fold:
    size: int = 40
    last_event_id: int = 0

    def add(self, event: HistoryEvent) -> None:
        self.last_event_id = event.event_id


async def note(folds: KeptFolds[Fold], *names: str) -> list[int]:
    """Of each execution how often its fold has been used since it was made."""
    counts = []
    for name in names:
        async with folds.use(name) as fold:
            fold.last_event_id += 1
            counts.append(fold.last_event_id)
    return counts


async def test_folds_of_followed_executions_do_not_displace_each_other() -> None:
    """There is room for two folds besides, so that in turn all of three would be made anew."""
    folds = KeptFolds(Fold, Limits(step_paths_bytes_max=100, followed_summaries_bytes_max=130))
    with folds.following("a"), folds.following("b"), folds.following("c"):
        assert await note(folds, "a", "b", "c") == [1, 1, 1]
        with folds.following("a"):
            assert await note(folds, "other", "more", "a", "b", "c") == [1, 1, 2, 2, 2]
        assert await note(folds, "a", "b", "c") == [3, 3, 3]
        with folds.following("d"):  # for which there is no room left
            assert await note(folds, "d", "other", "more", "d", "a") == [1, 1, 1, 1, 4]
    assert [fold.last_event_id for fold in folds.folds()] == [3, 4]  # of `b` and `a`, which ended last


async def test_a_fold_in_use_when_its_last_reader_leaves_is_kept_as_others_are() -> None:
    folds = KeptFolds(Fold, Limits(step_paths_bytes_max=100, followed_summaries_bytes_max=130))
    with folds.following("a"):
        using = folds.use("a")
        await using.__aenter__()
    await using.__aexit__(None, None, None)
    assert await note(folds, "b", "c", "a") == [1, 1, 1]
