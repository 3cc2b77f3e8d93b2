"""Double-quoted texts: JSON strings, in paths and in conditions."""

import json

from flowserver.expressions.errors import ExpressionError

_DECODER = json.JSONDecoder(strict=False)  # not strict: literals may hold raw tabs and line ends


def read_string(text: str, start: int) -> tuple[str, int]:
    """Decode the literal whose opening quote is at `start`; returns its value and the offset after it.

    Raises ExpressionError for an unknown escape or a missing closing quote.
    """
    try:
        value, end = _DECODER.raw_decode(text, start)
    except json.JSONDecodeError as error:
        if error.msg.startswith("Unterminated"):
            raise ExpressionError("the closing quote is missing", start) from None
        raise ExpressionError("this escape is not one of JSON's", error.pos) from None
    return str(value), end
