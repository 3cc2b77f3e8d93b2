from pathlib import Path

from sqlalchemy import literal, select

from flowserver.store.sql.database import Database
from tests.support.compiled_statements import COMPILED


def test_a_second_database_compiles_nothing(tmp_path: Path) -> None:
    compiled = []
    for name in ("one", "other"):
        database = Database(f"sqlite:///{tmp_path}/{name}.db")
        for access in (database.write, database.read, database.look):
            with access() as connection:
                assert connection.execute(select(literal(1).label("of_this_test"))).scalar_one() == 1
        database.close()
        compiled.append(set(COMPILED))
    assert compiled[0] == compiled[1]
