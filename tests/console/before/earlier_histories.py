"""A server of today with executions that 743398d5 has run (`make.py`)."""

import gzip
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from tests.support.server import ServerProcess

DUMP = Path(__file__).parent / "743398d5.sql.gz"


@contextmanager
def earlier_histories(folder: Path) -> Iterator[ServerProcess]:
    """The server, on a migrated copy in that folder."""
    file = folder / "flows.db"
    with closing(sqlite3.connect(file)) as database:
        database.executescript(gzip.decompress(DUMP.read_bytes()).decode())
    with ServerProcess(f"sqlite:///{file}", "--migrate") as server:
        yield server
