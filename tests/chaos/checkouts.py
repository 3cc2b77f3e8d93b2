"""The program as it was: the code of an earlier checkout, run by the interpreter and the libraries of this one."""

import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.support.server import ServerProcess, clean_environment

HERE = Path(__file__).parents[2]
MIGRATE_SECONDS = 120


@dataclass(frozen=True, slots=True)
class Checkout:
    """The folder of a checkout, and what to call it."""

    name: str
    folder: Path

    def migrate(self, database_url: str) -> str:
        """Bring the database up to this checkout's schema; returns what the command says."""
        command = [sys.executable, "-P", "-m", "flowserver", "migrate", "--database-url", database_url]
        done = subprocess.run(
            command,
            env=clean_environment() | self._variables(),
            cwd=self.folder,
            capture_output=True,
            text=True,
            timeout=MIGRATE_SECONDS,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def serve(self, database_url: str) -> ServerProcess:
        """A server of this checkout that is ready for requests."""
        return ServerProcess(database_url, python=sys.executable, environment=self._variables(), folder=self.folder)

    def _variables(self) -> dict[str, str]:
        return {"PYTHONPATH": str(self.folder)}  # comes before this checkout, which is installed


@contextmanager
def checkout_of(source: str) -> Iterator[Checkout]:
    """The checkout in the folder `source`, or else the files of that git revision, in a folder of its own."""
    if Path(source).is_dir():
        yield Checkout(source, Path(source).resolve())
        return
    archive = subprocess.run(["git", "-C", str(HERE), "archive", source], check=True, capture_output=True).stdout
    with tempfile.TemporaryDirectory(prefix="flowserver-checkout-") as place:
        subprocess.run(["tar", "-x", "-C", place], input=archive, check=True)
        yield Checkout(source, Path(place))
