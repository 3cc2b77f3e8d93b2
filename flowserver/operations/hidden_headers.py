"""Values of functions' headers are secrets: replies show `(hidden)` in their place, and a registration may repeat that.

A value that only refers to named secrets, such as `Bearer ${secret:SHOP}`, is shown as it is.

A registration that repeats it keeps the stored value, so that what a caller has read can be changed and sent back. But
it must not send the value to another server: then each caller could read it there.
"""

from collections.abc import Mapping
from dataclasses import replace

from yarl import URL

from flowserver.base.errors import InvalidArgument
from flowserver.base.hidden_values import HIDDEN
from flowserver.base.secret_references import is_only_references
from flowserver.store.functions import FunctionRow


def hide_values(headers: Mapping[str, str]) -> dict[str, str]:
    """The headers as every reply shows them."""
    return {name: value if is_only_references(value) else HIDDEN for name, value in headers.items()}


def with_stored_values(wanted: FunctionRow, stored: FunctionRow | None) -> FunctionRow:
    """The registration with the stored values of the headers that it shows as hidden.

    Raises InvalidArgument if there is no such value, or if a URL is at an origin that the stored registration has not.
    """
    kept = [name for name, value in wanted.headers.items() if value == HIDDEN]
    if not kept:
        return wanted
    values = {} if stored is None else {name.lower(): value for name, value in stored.headers.items()}
    unknown = [name for name in kept if name.lower() not in values]
    if unknown:
        raise InvalidArgument(f"the value of header {unknown[0]} is {HIDDEN}, but none is stored: send the value")
    if stored is None or not _origins(wanted) <= _origins(stored):
        raise InvalidArgument(
            f"the value of header {kept[0]} is {HIDDEN}, and the stored value is kept only for the same scheme, host "
            "and port: send the value"
        )
    return replace(wanted, headers={**wanted.headers, **{name: values[name.lower()] for name in kept}})


def _origins(row: FunctionRow) -> set[URL]:
    """Where the function's headers are sent to."""
    urls = (row.url, row.initialize_url, row.pre_stop_url)
    try:
        return {URL(url).origin() for url in urls if url is not None}
    except ValueError:  # a damaged row
        return set()
