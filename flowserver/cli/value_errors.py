"""What is said of the value of an option that is refused: what it must be, in the words of this program."""

import re
from collections.abc import Iterable, Sequence
from difflib import get_close_matches
from enum import Enum
from typing import Any, Final, Literal, get_args, get_origin

LISTED_MAX: Final = 8
"""Of more words that are allowed, only the nearest is named if one is near."""

_NO_CHOICE: Final = re.compile(r"(?:Value error, )?(.+) is not one of ", re.DOTALL)


def reword(error: Any) -> None:
    """Replace the message of an error about a value, where typer took it from pydantic."""
    kind = getattr(getattr(error, "param", None), "type_descriptor", None)
    if kind is None or not error.message:
        return
    refused = _NO_CHOICE.match(error.message)
    if refused and (choices := _choices(kind.annotation)):
        error.message = not_one_of(refused[1], choices)
    elif error.message.startswith("Input should") and kind.annotation is int:
        error.message = f"must be {_number(kind.parameter_info.min, kind.parameter_info.max)}"
    error.message = error.message.removeprefix("Value error, ").replace("Input should", "must", 1)


def not_one_of(shown: str, choices: Iterable[str]) -> str:
    """That the word, which is shown in quotes, is none of these; and which of them was probably meant."""
    by_lower = {each.lower(): each for each in choices}
    near = get_close_matches(shown[1:-1].lower(), list(by_lower), n=1)
    hint = f"; did you mean {by_lower[near[0]]}?" if near else ""
    if near and len(by_lower) > LISTED_MAX:
        return f"{shown} is unknown{hint}"
    return f"{shown} is not one of {', '.join(by_lower.values())}{hint}"


def _choices(annotation: Any) -> Sequence[str]:
    """The words that an option of this type takes, as users write them; none if it takes other values."""
    if get_origin(annotation) is list:
        return _choices(get_args(annotation)[0])
    if get_origin(annotation) is Literal:
        return get_args(annotation)
    return [each.value for each in annotation] if isinstance(annotation, type) and issubclass(annotation, Enum) else ()


def _number(least: int | None, most: int | None) -> str:
    if least is not None and most is not None:
        return f"a whole number from {least} to {most}"
    return "a whole number" + ("" if least is None else f" of {least} or more")
