"""Length rules for error names and causes that callers give."""

from flowserver.base.errors import InvalidArgument
from flowserver.base.limits import Limits


def check_error(error: str | None, limits: Limits) -> None:
    """Raises InvalidArgument unless the error name has 1 to `error_characters_max` characters."""
    if error is not None and not 1 <= len(error) <= limits.error_characters_max:
        raise InvalidArgument(f"Error must have 1 to {limits.error_characters_max} characters")


def check_cause(cause: str | None, limits: Limits) -> None:
    """Raises InvalidArgument unless the cause has 1 to `cause_characters_max` characters."""
    if cause is not None and not 1 <= len(cause) <= limits.cause_characters_max:
        raise InvalidArgument(f"Cause must have 1 to {limits.cause_characters_max} characters")
