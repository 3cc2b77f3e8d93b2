"""Conversions of options, without pydantic where it is plain what a value means.

typer converts each option of a command with pydantic, even if it was not given or is a text. Importing pydantic takes
as long as all else that `flowserver start` does before it talks to the server.
"""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final, Literal, get_args, get_origin

_UNCERTAIN: Final = object()
"""Left to typer: most often an error, which it words."""

DIGITS_MAX: Final = 18
"""More make an error, or no int of 64 bits."""


def without_needless_conversions(command: Any) -> Any:
    """The command, or the group with its commands, whose options are converted by typer only if they need to be."""
    get_params = command.get_params
    command.get_params = lambda context: [converted_if_needed(each) for each in get_params(context)]
    for each in getattr(command, "commands", {}).values():
        without_needless_conversions(each)
    return command


def converted_if_needed(parameter: Any) -> Any:
    """The option or argument, whose value typer converts only if it is uncertain what it means."""
    kind = getattr(parameter, "type_descriptor", None)
    if kind is None or "process_value" in vars(parameter):
        return parameter
    convert = parameter.process_value

    def process_value(context: Any, value: Any) -> Any:
        if parameter.required and parameter.value_is_missing(value):
            return convert(context, value)
        absent = () if parameter.multiple or parameter.nargs == -1 else None
        found = absent if value is None else _converted(kind.annotation, kind.parameter_info, value)
        if found is _UNCERTAIN:
            return convert(context, value)
        return found if parameter.callback is None else parameter.callback(context, parameter, found)

    parameter.process_value = process_value
    return parameter


def _converted(kind: Any, limits: Any, value: Any) -> Any:
    """The value as typer converts it to this type, within these limits; or _UNCERTAIN."""
    if limits.parser is not None:
        return _UNCERTAIN
    if get_origin(kind) is list:
        found = [_converted(get_args(kind)[0], limits, each) for each in value] if _is_several(value) else [_UNCERTAIN]
        return _UNCERTAIN if _UNCERTAIN in found else found
    if get_origin(kind) is Literal:
        return _choice(get_args(kind), limits.case_sensitive, value)
    if kind is bool or kind is str:
        return value if isinstance(value, kind) else _UNCERTAIN
    if kind is int:
        return _integer(limits, value)
    return _path(limits, value) if kind is Path else _UNCERTAIN


def _is_several(value: Any) -> bool:
    return isinstance(value, Sequence) and not isinstance(value, str)


def _choice(choices: Sequence[str], case_sensitive: bool, value: Any) -> Any:
    if not isinstance(value, str):
        return _UNCERTAIN
    meant = value if case_sensitive else value.casefold()
    return next((each for each in choices if (each if case_sensitive else each.casefold()) == meant), _UNCERTAIN)


def _integer(limits: Any, value: Any) -> Any:
    is_number = isinstance(value, int) or (isinstance(value, str) and value.isascii() and value.isdecimal())
    if not is_number or isinstance(value, bool) or limits.clamp or len(str(value)) > DIGITS_MAX:
        return _UNCERTAIN
    number = int(value)
    is_within = (limits.min is None or number >= limits.min) and (limits.max is None or number <= limits.max)
    return number if is_within else _UNCERTAIN


def _path(limits: Any, value: Any) -> Any:
    """A path of which it does not matter what is there, unless that cannot be read."""
    has_demands = limits.exists or limits.writable or limits.resolve_path or limits.allow_dash
    if has_demands or not (limits.file_okay and limits.dir_okay) or limits.path_type is not None:
        return _UNCERTAIN
    readable = not limits.readable or not os.path.exists(value) or os.access(value, os.R_OK)  # noqa: PTH110 - cheaper
    return Path(value) if isinstance(value, str) and readable else _UNCERTAIN
