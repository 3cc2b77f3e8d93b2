"""XML documents of requests and answers, which are flat, or lists of flat ones.

A document of a request has no document type (so no entities) and few elements; the caller limits its size in bytes. Its
namespace and the order of its elements are ignored.
"""

from collections.abc import Iterable, Mapping
from typing import Final
from xml.etree.ElementTree import Element, ParseError, TreeBuilder
from xml.sax.saxutils import escape

from defusedxml.common import DefusedXmlException
from defusedxml.ElementTree import XMLParser

from flowserver.api.mns.faults import MalformedXml
from flowserver.base.xml_characters import fit_for_xml

NAMESPACE = "http://mns.aliyuncs.com/doc/v1/"

ELEMENTS_MAX: Final = 1_000
"""The most elements of one document, so that parsing delays no other request. The largest call has about 200."""

Fields = Mapping[str, object]
"""The elements of a flat document. None leaves an element out, because clients cannot read empty ones."""


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


def write_document(name: str, fields: Fields) -> bytes:
    """A flat document."""
    return _document(name, _elements(fields))


def write_list(name: str, item_name: str, items: Iterable[Fields], more: Fields | None = None) -> bytes:
    """A list of flat documents, followed by the elements of `more`."""
    texts = [f"<{item_name}>{_elements(item)}</{item_name}>" for item in items]
    return _document(name, "".join(texts) + _elements(more or {}))


def _document(name: str, content: str) -> bytes:
    text = f'<?xml version="1.0" encoding="UTF-8"?>\n<{name} xmlns="{NAMESPACE}">{content}</{name}>'
    return text.encode()


def _elements(fields: Fields) -> str:
    parts = [f"<{name}>{_text(value)}</{name}>" for name, value in fields.items() if value is not None]
    return "".join(parts)


def _text(value: object) -> str:
    text = str(value)
    if text.isalnum() and text.isascii():
        return text
    # An XML parser would read a bare carriage return as a line feed.
    return escape(fit_for_xml(text), {"\r": "&#13;"})
