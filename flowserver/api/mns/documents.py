"""XML documents as they come: no document types and so no entities; the size was bounded before.

All documents of this API are flat, or lists of flat ones. The namespace is not looked at, nor is the order of elements.
"""

from xml.etree.ElementTree import Element, ParseError

from defusedxml.common import DefusedXmlException
from defusedxml.ElementTree import fromstring

from flowserver.api.mns.faults import MalformedXml


def read_document(body: bytes, *names: str) -> Element:
    """The root of a document, which must have one of these names; raises MalformedXml."""
    try:
        root: Element = fromstring(body, forbid_dtd=True)
    except (ParseError, DefusedXmlException, ValueError, LookupError) as error:
        raise MalformedXml(f"the body is not the XML that was asked for: {error}"[:300]) from None
    if local_name(root) not in names:
        raise MalformedXml(f"the body must be <{'> or <'.join(names)}>")
    return root


def local_name(element: Element) -> str:
    """The element's name without its namespace."""
    return str(element.tag).rpartition("}")[2]


def children(element: Element, name: str) -> list[Element]:
    """The elements of that name directly within."""
    return [child for child in element if local_name(child) == name]


def fields_of(element: Element) -> dict[str, str]:
    """The texts of the elements directly within, by name."""
    return {local_name(child): child.text or "" for child in element}
