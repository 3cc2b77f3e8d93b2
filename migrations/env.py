"""Alembic's entry: over the connection that `store.schema.migrating` hands in, or over `-x url=…` by hand."""

from alembic import context
from sqlalchemy import Connection

from flowserver.store.schema.all_tables import metadata
from flowserver.store.sql.database import Database


def run(connection: Connection) -> None:
    context.configure(connection=connection, target_metadata=metadata, compare_type=True, render_as_batch=True)
    with context.begin_transaction():
        context.run_migrations()


given = context.config.attributes.get("connection")
if given is not None:
    run(given)
else:
    database = Database(context.get_x_argument(as_dictionary=True).get("url", "sqlite:///data/flowserver.db"))
    with database.write() as own:
        run(own)
    database.close()
