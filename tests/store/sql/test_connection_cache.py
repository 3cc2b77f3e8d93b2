"""The cached connection: reused while it is valid, returned to the pool when in doubt."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from sqlalchemy import Connection, Engine, create_engine, event, text
from sqlalchemy.exc import IntegrityError

from flowserver.store.sql.connection_cache import UNTESTED_SECONDS, ConnectionCache
from flowserver.store.sql.database import Database


class Seconds:
    """A clock that moves only when a test moves it."""

    def __init__(self) -> None:
        self.now = 1_000.0

    def __call__(self) -> float:
        return self.now


class Counted:
    """Counts what happens to an engine's connections."""

    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        self.taken: list[object] = []
        """Called whenever a connection was taken from the pool."""
        self.given_back = 0
        self.closed = 0
        event.listen(engine, "checkout", lambda connection, *_: self.taken.append(connection))
        event.listen(engine, "checkin", self._checkin)
        event.listen(engine, "close", self._close)
        event.listen(engine, "close_detached", self._close)

    def _checkin(self, *_: Any) -> None:
        self.given_back += 1

    def _close(self, *_: Any) -> None:
        self.closed += 1


@pytest.fixture
def seconds() -> Seconds:
    return Seconds()


@pytest.fixture
def counted(database: Database) -> Iterator[Counted]:
    """An engine over the database of the test, which runs on both kinds."""
    engine = create_engine(database.url, pool_size=2, max_overflow=0, pool_timeout=1)
    yield Counted(engine)
    engine.dispose()


@pytest.fixture
def make(counted: Counted, seconds: Seconds) -> Iterator[Callable[[bool], ConnectionCache]]:
    made: list[ConnectionCache] = []

    def make_one(may_die: bool) -> ConnectionCache:
        made.append(ConnectionCache(counted.engine, may_die=may_die, seconds=seconds))
        return made[-1]

    yield make_one
    for spare in made:
        spare.close()


@pytest.fixture
def spare(make: Callable[[bool], ConnectionCache]) -> ConnectionCache:
    return make(True)


def use(spare: ConnectionCache) -> object:
    with spare.begin() as connection:
        assert connection.execute(text("SELECT 1")).scalar_one() == 1
        return driver_of(connection)


def driver_of(connection: Connection) -> object:
    return connection.connection.driver_connection


def test_the_same_connection_is_reused(spare: ConnectionCache, counted: Counted) -> None:
    assert use(spare) is use(spare)
    assert (len(counted.taken), counted.given_back) == (1, 0)


def test_two_concurrent_users_have_one_each_and_one_is_kept(spare: ConnectionCache, counted: Counted) -> None:
    with spare.begin() as first, spare.begin() as second:
        assert driver_of(first) is not driver_of(second)
    assert (len(counted.taken), counted.given_back) == (2, 1)
    use(spare)
    assert len(counted.taken) == 2


def test_a_connection_whose_block_raised_goes_to_the_pool(spare: ConnectionCache, counted: Counted) -> None:
    with pytest.raises(ZeroDivisionError), spare.begin() as connection:
        connection.execute(text("SELECT 1"))
        raise ZeroDivisionError
    assert counted.given_back == 1
    use(spare)
    assert len(counted.taken) == 2


def test_a_connection_that_cannot_begin_goes_to_the_pool(spare: ConnectionCache, counted: Counted) -> None:
    fails = [True, False]

    def begin(_: Connection) -> None:
        if fails.pop(0):
            raise ZeroDivisionError

    event.listen(counted.engine, "begin", begin)
    with pytest.raises(ZeroDivisionError), spare.begin():
        pass
    assert counted.given_back == 1
    use(spare)
    assert len(counted.taken) == 2


def test_a_connection_that_cannot_commit_goes_to_the_pool(spare: ConnectionCache, counted: Counted) -> None:
    """A deferred constraint is checked only by COMMIT."""
    with pytest.raises(IntegrityError), spare.begin() as connection:
        if connection.dialect.name == "sqlite":
            connection.execute(text("PRAGMA foreign_keys = ON"))
        connection.execute(text("CREATE TEMPORARY TABLE one (id INTEGER PRIMARY KEY)"))
        connection.execute(
            text("CREATE TEMPORARY TABLE two (id INTEGER REFERENCES one (id) DEFERRABLE INITIALLY DEFERRED)")
        )
        connection.execute(text("INSERT INTO two VALUES (7)"))
        reached_the_end = True
    assert reached_the_end
    assert counted.given_back == 1
    use(spare)
    assert len(counted.taken) == 2


@pytest.mark.parametrize(
    ("may_die", "idle_seconds", "taken"),
    [(True, UNTESTED_SECONDS - 0.1, 1), (True, UNTESTED_SECONDS, 2), (False, 1e6, 1)],
)
def test_an_idle_connection_goes_through_the_pool(
    make: Callable[[bool], ConnectionCache],
    counted: Counted,
    seconds: Seconds,
    may_die: bool,
    idle_seconds: float,
    taken: int,
) -> None:
    spare = make(may_die)
    use(spare)
    seconds.now += idle_seconds
    use(spare)
    assert (len(counted.taken), counted.given_back) == (taken, taken - 1)


def test_closing_returns_it_to_the_pool(spare: ConnectionCache, counted: Counted) -> None:
    use(spare)
    spare.close()
    assert counted.given_back == 1


@pytest.mark.parametrize("fails", [False, True])
def test_a_connection_in_use_while_all_are_closed_is_closed_with_its_transaction(
    spare: ConnectionCache, counted: Counted, fails: bool
) -> None:
    try:
        with spare.begin():
            spare.close()
            counted.engine.dispose()
            if fails:
                raise ZeroDivisionError
    except ZeroDivisionError:
        pass
    assert counted.closed == 1
    use(spare)
    assert counted.closed == 2
