"""`python -m tests.store.sql.crashing URL ROWS`: commits this many rows and ends as a crash would, leaving a log."""

import os
import sys

from sqlalchemy import insert

from flowserver.store.schema.tables import secrets
from flowserver.store.sql.database import Database

if __name__ == "__main__":
    database = Database(sys.argv[1])
    for number in range(int(sys.argv[2])):
        with database.write() as connection:
            connection.execute(insert(secrets), {"name": f"{os.getpid()}-{number}", "value": "x" * 3_000})
    os._exit(9)
