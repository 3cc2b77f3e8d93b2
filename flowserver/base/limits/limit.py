"""One row of the table of limits."""

from dataclasses import field
from typing import Any


def limit(default: int, cloud: int | None = None, *, unit: str, reason: str, error: str) -> Any:
    """A field with its value in both profiles, which are the same if `cloud` is not given.

    `reason` says why the limit is there, `error` what a caller sees when it is passed.
    """
    row = {"cloud": default if cloud is None else cloud, "unit": unit, "reason": reason, "error": error}
    return field(default=default, metadata=row)
