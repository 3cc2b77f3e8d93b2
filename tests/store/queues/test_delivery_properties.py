"""In every sequence of events a delivery stays until it has succeeded or was given up, and is due on time."""

import shutil
import tempfile
from pathlib import Path

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from flowserver.machine.deliveries.retry_strategies import Strategy, next_attempt_at
from flowserver.store.queues.deliveries import (
    Delivery,
    claim_deliveries,
    delete_delivery,
    insert_deliveries,
    next_delivery_at,
    put_off_delivery,
)
from flowserver.store.sql.database import Database
from tests.store.queues.test_deliveries import new

CLAIM_MS = 10_000
EACH_MAX = 3
TARGETS = ("http://a/", "http://b/", "acs:mns:::queues/q")


class Delivering(RuleBasedStateMachine):
    """Nodes that deliver, and can die at any moment, beside a plain model of the expected state."""

    def __init__(self, migrated: Path) -> None:
        super().__init__()
        self._folder = tempfile.TemporaryDirectory()
        file = shutil.copy(migrated, Path(self._folder.name) / "flowserver.db")
        self.database = Database(f"sqlite:///{file}")
        self.now = 1_000
        self.due: dict[str, int] = {}
        self.attempts: dict[str, int] = {}
        self.target: dict[str, str] = {}
        self.claimed: list[Delivery] = []
        self.number = 0

    def teardown(self) -> None:
        self.database.close()
        self._folder.cleanup()

    @rule(to=st.sampled_from(TARGETS), count=st.integers(1, 5), strategy=st.sampled_from(Strategy))
    def add(self, to: str, count: int, strategy: Strategy) -> None:
        ids = [f"d{self.number + each}" for each in range(count)]
        self.number += count
        with self.database.write() as connection:
            insert_deliveries(connection, [new(each, to, strategy=strategy) for each in ids], self.now)
        self.due.update(dict.fromkeys(ids, self.now))
        self.attempts.update(dict.fromkeys(ids, 0))
        self.target.update(dict.fromkeys(ids, to))

    @precondition(lambda self: self.due)
    @rule()
    def add_again(self) -> None:
        known = min(self.due)
        with self.database.write() as connection:
            insert_deliveries(connection, [new(known, self.target[known])], self.now)

    @rule(limit=st.integers(1, 9))
    def claim(self, limit: int) -> None:
        under_way: dict[str, int] = {}
        for each in self.claimed:
            under_way[each.target] = under_way.get(each.target, 0) + 1
        with self.database.write() as connection:
            claimed = claim_deliveries(connection, self.now, self.now + CLAIM_MS, limit, under_way, EACH_MAX)
        assert len(claimed) <= limit
        for each in claimed:
            assert self.due[each.delivery_id] <= self.now, "nothing is claimed before it is due"
            self.attempts[each.delivery_id] += 1
            assert each.attempt == self.attempts[each.delivery_id]
            self.due[each.delivery_id] = self.now + CLAIM_MS
        self.claimed += claimed
        counts = [sum(each.target == target for each in self.claimed) for target in TARGETS]
        assert max(counts) <= EACH_MAX
        free = {target for target, count in zip(TARGETS, counts, strict=True) if count < EACH_MAX}
        room = [each for each, at in self.due.items() if at <= self.now and self.target[each] in free]
        assert claimed or not room, "a due delivery with a free slot is claimed"

    @precondition(lambda self: self.claimed)
    @rule(which=st.integers(0, 99))
    def arrive(self, which: int) -> None:
        """Also a delivery whose claim has expired, and which another attempt has claimed."""
        each = self.claimed.pop(which % len(self.claimed))
        with self.database.write() as connection:
            assert delete_delivery(connection, each.delivery_id) == (each.delivery_id in self.due)
        self.due.pop(each.delivery_id, None)

    @precondition(lambda self: self.claimed)
    @rule(which=st.integers(0, 99), chance=st.floats(0, 1))
    def fail(self, which: int, chance: float) -> None:
        each = self.claimed.pop(which % len(self.claimed))
        again_at = next_attempt_at(each.strategy, each.attempt, self.now, chance)
        if again_at is None:
            with self.database.write() as connection:
                delete_delivery(connection, each.delivery_id)
            self.due.pop(each.delivery_id, None)
            return
        with self.database.write() as connection:
            put_off_delivery(connection, each, again_at)
        if each.delivery_id in self.due and self.attempts[each.delivery_id] == each.attempt:
            self.due[each.delivery_id] = again_at

    @precondition(lambda self: self.claimed)
    @rule()
    def die(self) -> None:
        """The node forgets its claims; no other state records them."""
        self.claimed.clear()

    @rule(ms=st.sampled_from([1, 999, 5_000, CLAIM_MS, 20_000]))
    def pass_time(self, ms: int) -> None:
        self.now += ms

    @invariant()
    def the_next_is_known(self) -> None:
        with self.database.read() as connection:
            assert next_delivery_at(connection) == min(self.due.values(), default=None)


def test_deliveries_are_neither_lost_nor_early(migrated_sqlite: Path) -> None:
    run_state_machine_as_test(
        lambda: Delivering(migrated_sqlite), settings=settings(max_examples=60, stateful_step_count=40, deadline=None)
    )
