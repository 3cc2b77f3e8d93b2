"""Which characters XML documents can hold: not all that a text can."""

import re
from typing import Final

NOT_IN_XML: Final = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""A character that no XML document can hold, not even escaped."""


def fit_for_xml(text: str) -> str:
    """The text with U+FFFD in place of what no XML document can hold."""
    return NOT_IN_XML.sub("\ufffd", text)
