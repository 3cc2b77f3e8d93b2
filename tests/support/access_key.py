"""A database whose server accepts one access key, and that key."""

from flowserver.store.access_keys import AccessKey, insert_access_key, token_digest
from flowserver.store.schema.migrating import migrate
from flowserver.store.sql.database import Database

ACCESS_KEY_ID = "testak"
SECRET = "testsecret"
TOKEN = "fls_test"


def create_database_with_key(database_url: str) -> None:
    """Migrate the database and add the key."""
    database = Database(database_url)
    migrate(database)
    key = AccessKey(
        access_key_id=ACCESS_KEY_ID,
        secret=SECRET,
        token_digest=token_digest(TOKEN),
        label="tests",
        created_at=0,
        disabled_at=None,
    )
    with database.write() as connection:
        insert_access_key(connection, key)
    database.close()
