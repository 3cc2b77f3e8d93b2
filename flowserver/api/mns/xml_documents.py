"""Reads XML documents of requests, without document types (so no entities), and with few elements.

The caller limits the size in bytes. All documents of this API are flat, or lists of flat ones. The namespace and the
order of elements are ignored.
"""

from typing import Final
from xml.etree.ElementTree import Element, ParseError, TreeBuilder

from defusedxml.common import DefusedXmlException
from defusedxml.ElementTree import XMLParser

from flowserver.api.mns.faults import MalformedXml

ELEMENTS_MAX: Final = 1_000
"""The most elements of one document, so that parsing delays no other request. The largest call has about 200."""


class _Builder(TreeBuilder):
    """Builds the tree, and stops if it grows too large."""

    def __init__(self) -> None:
        super().__init__()
        self._left = ELEMENTS_MAX

    def start(self, tag: str, attrs: dict[str, str], /) -> Element:
        self._left -= 1
        if self._left < 0:
            raise MalformedXml(f"the body has more than {ELEMENTS_MAX} elements")
        return super().start(tag, attrs)


def read_document(body: bytes, *names: str) -> Element:
    """The root of a document, which must have one of these names; raises MalformedXml."""
    try:
        parser = XMLParser(target=_Builder(), forbid_dtd=True)
        parser.feed(body)
        root: Element = parser.close()
    except (ParseError, DefusedXmlException, ValueError, LookupError) as error:
        raise MalformedXml(f"the body is not the XML that was asked for: {error}"[:300]) from None
    if local_name(root) not in names:
        raise MalformedXml(f"the body must be <{'> or <'.join(names)}>")
    return root


def local_name(element: Element) -> str:
    """The element's name without its namespace."""
    return str(element.tag).rpartition("}")[2]


def children(element: Element, name: str) -> list[Element]:
    """The child elements of that name."""
    return [child for child in element if local_name(child) == name]


def fields_of(element: Element, *nested: str) -> dict[str, str]:
    """The texts of the child elements, by name.

    Raises MalformedXml if a child has elements, unless `nested` names it: its text was not escaped, and reading it
    would drop the part inside the elements.
    """
    for child in element:
        if len(child) and local_name(child) not in nested:
            raise MalformedXml(f"{local_name(child)} holds elements, but must be a text; write &lt; for <")
    return {local_name(child): child.text or "" for child in element}
