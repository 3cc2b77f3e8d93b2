"""Rules for the texts that callers give: error names, causes, descriptions."""

from flowserver.base.errors import InvalidArgument
from flowserver.base.limits import Limits


def check_error(error: str | None, limits: Limits) -> None:
    """Raises InvalidArgument unless the error name has 1 to `error_characters_max` characters, none of them NUL."""
    _check_length("Error", error, limits.error_characters_max)


def check_cause(cause: str | None, limits: Limits) -> None:
    """Raises InvalidArgument unless the cause has 1 to `cause_characters_max` characters, none of them NUL."""
    _check_length("Cause", cause, limits.cause_characters_max)


def check_no_nul(name: str, text: str) -> None:
    """Raises InvalidArgument if the text holds the character NUL, which PostgreSQL cannot store."""
    if "\0" in text:
        raise InvalidArgument(f"{name} must not hold the character NUL")


def _check_length(name: str, text: str | None, characters_max: int) -> None:
    if text is None:
        return
    if not 1 <= len(text) <= characters_max:
        raise InvalidArgument(f"{name} must have 1 to {characters_max} characters")
    check_no_nul(name, text)
