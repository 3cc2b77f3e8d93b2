"""How long backups, restores and copies take, in seconds for a GiB of the SQLite file.

`python -m tests.benchmarks.keeping [--executions N]`

Fills a SQLite database with ended executions, then runs the commands of an operator on it, each in a process of its
own: backup, restore, copy to PostgreSQL, and copy back. Prints a Markdown table.
"""

import argparse
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from flowserver.store.schema.migrating import migrate
from flowserver.store.sql.database import Database
from tests.benchmarks.lists import prepare
from tests.support.postgres import fresh_database, running_postgres

COMMAND_SECONDS_MAX = 1_800


def timed(*words: str) -> float:
    """Seconds of a command."""
    began = time.monotonic()
    command = [sys.executable, "-m", "flowserver", *words]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, timeout=COMMAND_SECONDS_MAX)
    return time.monotonic() - began


def main() -> None:
    """Fill, run, print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--executions", type=int, default=500_000)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=".") as folder, running_postgres(durable=True) as server:
        file, backup, back = (Path(folder, name).absolute() for name in ("flowserver.db", "backup.db", "back.db"))
        url = f"sqlite:///{file}"
        database = Database(url)
        migrate(database)
        prepare(database, arguments.executions)
        database.close()
        gib = file.stat().st_size / 2**30
        with fresh_database(server) as postgres:
            taken = {
                "backup": timed("backup", str(backup), "--database-url", url),
                "restore, with every row read": timed("restore", str(backup), "--database-url", url),
                "copy to PostgreSQL, compared": timed("copy", url, postgres),
                "copy back, compared": timed("copy", postgres, f"sqlite:///{back}"),
            }
    print(f"{arguments.executions:,} executions, {gib:.2f} GiB\n\n| | s | s/GiB |\n|---|---:|---:|")
    for what, seconds in taken.items():
        print(f"| {what} | {seconds:.1f} | {seconds / gib:.0f} |")


if __name__ == "__main__":
    main()
