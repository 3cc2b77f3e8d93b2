from collections.abc import AsyncIterator, Callable, Iterator

import pytest

from flowserver.base.limits import Limits
from tests.engine.called_functions import Functions
from tests.engine.nodes import FragileDatabase, Node, running_node
from tests.support.clock import ManualClock


@pytest.fixture
async def functions() -> AsyncIterator[Functions]:
    server = Functions()
    await server.start()
    yield server
    await server.stop()


@pytest.fixture
def open_database(database_url: str) -> Iterator[Callable[[], FragileDatabase]]:
    """Opens the test's database, once for every node; the test runs on both kinds."""
    opened: list[FragileDatabase] = []

    def open_one() -> FragileDatabase:
        opened.append(FragileDatabase(database_url))
        return opened[-1]

    yield open_one
    for database in opened:
        database.close()


@pytest.fixture
def limits() -> Limits:
    """The limits of `node`. A test that needs others sets them by `parametrize`."""
    return Limits()


@pytest.fixture
async def node(open_database: Callable[[], FragileDatabase], clock: ManualClock, limits: Limits) -> AsyncIterator[Node]:
    """A running engine over its own database; the test runs on both kinds."""
    async with running_node(open_database(), clock, limits=limits) as running:
        yield running
