"""Conversions of options, only where there is something to convert.

typer converts each option of a command with pydantic, even if it was not given or is a text. Importing pydantic takes
as long as all else that `flowserver start` does before it talks to the server.
"""

from typing import Any


def without_needless_conversions(command: Any) -> Any:
    """The command, or the group with its commands, whose options are converted only if they need to be."""
    get_params = command.get_params
    command.get_params = lambda context: [converted_if_needed(each) for each in get_params(context)]
    for each in getattr(command, "commands", {}).values():
        without_needless_conversions(each)
    return command


def converted_if_needed(parameter: Any) -> Any:
    """The option or argument, which takes a text as it is, and nothing if it was not given and need not be."""
    is_text = getattr(getattr(parameter, "type_descriptor", None), "annotation", None) is str
    if parameter.multiple or parameter.nargs != 1 or "process_value" in vars(parameter):
        return parameter
    convert = parameter.process_value

    def process_value(context: Any, value: Any) -> Any:
        is_final = not parameter.required if value is None else is_text and isinstance(value, str)
        if not is_final:
            return convert(context, value)
        return value if parameter.callback is None else parameter.callback(context, parameter, value)

    parameter.process_value = process_value
    return parameter
