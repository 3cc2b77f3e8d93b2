"""JSON objects that callers pass as the text of a parameter."""

from flowserver.base.errors import InvalidArgument
from flowserver.base.json_values import InvalidJson, JsonObject, json_bytes, load_json_object
from flowserver.base.limits import Limits


def parse_input(text: str, limits: Limits, name: str = "Input") -> JsonObject:
    """A JSON object from a request parameter, `""` being `{}`; raises InvalidArgument."""
    if text == "":
        return {}
    try:
        value = load_json_object(text)
    except InvalidJson as error:
        raise InvalidArgument(f"{name} must be the JSON text of an object: {error}") from None
    size = json_bytes(value)
    if size > limits.step_data_bytes_max:
        raise InvalidArgument(
            f"{name} holds {size} bytes; the limit step_data_bytes_max is {limits.step_data_bytes_max}"
        )
    return value
