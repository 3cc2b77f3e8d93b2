"""The characters that XML documents can hold. A text can hold more."""

import re
from typing import Final

NOT_IN_XML: Final = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""A character that no XML document can hold, not even escaped."""


def fit_for_xml(text: str) -> str:
    """The text with U+FFFD in place of each character that no XML document can hold."""
    return NOT_IN_XML.sub("\ufffd", text)
