"""The settings of asynchronous invocations, read from a function's stored configuration.

Configurations are stored as clients sent them: a missing or invalid field gets its default.
"""

from typing import Any

from sqlalchemy import Connection, bindparam, select

from flowserver.base.json_values import InvalidJson, load_stored_json
from flowserver.machine.invocations.states import (
    AGE_SECONDS_DEFAULT,
    AGE_SECONDS_MAX,
    RETRIES_DEFAULT,
    RETRIES_MAX,
    InvocationSettings,
)
from flowserver.store.schema.tables import async_configs
from flowserver.store.sql.list_parameter import among, texts
from flowserver.store.sql.prepared import fetch_all

LATEST = ("", "LATEST")
"""The two spellings of "no version or alias"."""


def find_async_settings(connection: Connection, service: str, qualifier: str, function: str) -> InvocationSettings:
    """The settings for invocations of the function under this qualifier."""
    names = LATEST if qualifier in LATEST else (qualifier,)
    given = {"b_service": service, "b_function": function, "listed": texts(connection, names)}
    rows = fetch_all(connection, _FIND, given)
    return _settings(rows[0][0]) if rows else InvocationSettings()


_FIND = (
    select(async_configs.c.document)
    .where(
        async_configs.c.service == bindparam("b_service"),
        async_configs.c.function == bindparam("b_function"),
        among(async_configs.c.qualifier, bindparam("listed")),
    )
    .order_by(async_configs.c.qualifier)
)


def _settings(text: Any) -> InvocationSettings:
    try:
        document = load_stored_json(text)
    except (InvalidJson, TypeError):
        document = None
    if not isinstance(document, dict):
        return InvocationSettings()
    return InvocationSettings(
        retries=_number(document.get("maxAsyncRetryAttempts"), 0, RETRIES_MAX, RETRIES_DEFAULT),
        age_seconds=_number(document.get("maxAsyncEventAgeInSeconds"), 1, AGE_SECONDS_MAX, AGE_SECONDS_DEFAULT),
        on_success=_destination(document, "onSuccess"),
        on_failure=_destination(document, "onFailure"),
    )


def _number(value: Any, least: int, most: int, default: int) -> int:
    return value if type(value) is int and least <= value <= most else default


def _destination(document: dict[str, Any], name: str) -> str | None:
    of_all = document.get("destinationConfig")
    one = of_all.get(name) if isinstance(of_all, dict) else None
    target = one.get("destination") if isinstance(one, dict) else None
    return target if isinstance(target, str) and target else None
