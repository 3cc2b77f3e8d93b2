"""The metadata with every table: code that needs the whole schema takes it from here."""

from flowserver.store.schema import (  # noqa: F401 - importing them adds their tables
    audit_tables,
    invocation_tables,
    queue_tables,
    schedule_tables,
    secret_tables,
    sign_in_tables,
    tables,
    version_tables,
)
from flowserver.store.schema.metadata import metadata

__all__ = ["metadata"]
