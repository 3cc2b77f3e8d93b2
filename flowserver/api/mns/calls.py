"""A call, as the router passes it to the function that serves it, and readers of its parameters."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from urllib.parse import unquote
from xml.etree.ElementTree import Element

from flowserver.api.mns.answers import Answer
from flowserver.api.mns.xml_documents import fields_of, local_name
from flowserver.base.errors import InvalidArgument


@dataclass(frozen=True, slots=True)
class Call:
    """A request: the names in its path, its query by lower-case name, its headers by lower-case name, its body."""

    names: tuple[str, ...]
    query: Mapping[str, str]
    headers: Mapping[str, str]
    body: bytes

    @property
    def host_url(self) -> str:
        """This server's URL, as the client addressed it."""
        host = self.headers.get("host", "")
        return host if host.startswith(("http://", "https://")) else f"http://{host}"


def located(call: Call, path: str, *, is_new: bool) -> Answer:
    """The answer to a creation of `path`, new or existing; clients require the header."""
    return Answer(201 if is_new else 204, headers=((b"location", f"{call.host_url}{path}".encode()),))


def read_query(query: str) -> dict[str, str]:
    """Parameters by lower-case name, since SDKs differ in case. Values may contain `=` and need not be escaped."""
    pairs = (part.partition("=") for part in query.split("&") if part)
    return {unquote(name).lower(): unquote(value) for name, _, value in pairs}


def is_true(value: str | None) -> bool:
    """Whether a flag of the query or the headers is set: `true`, in any case."""
    return value is not None and value.lower() == "true"


def paging(call: Call) -> tuple[str, str, int | None]:
    """The prefix of the names to list, the marker to start after, and how many to list at most."""
    given = call.headers
    limit = given.get("x-mns-ret-number")
    number = None if limit is None else integer("x-mns-ret-number", limit)
    return given.get("x-mns-prefix", ""), given.get("x-mns-marker", ""), number


def integer(name: str, text: str) -> int:
    """A non-negative integer; raises InvalidArgument."""
    text = text.strip()
    if text.isascii() and text.isdigit() and len(text) < 16:
        return int(text)
    raise InvalidArgument(f"{name} must be a whole number")


def integer_in(fields: Mapping[str, str], name: str) -> int | None:
    """The integer in an element, None without the element; raises InvalidArgument."""
    return integer(name, fields[name]) if name in fields else None


def boolean_in(fields: Mapping[str, str], name: str) -> bool | None:
    """The boolean in an element, None without the element; raises InvalidArgument."""
    return boolean(name, fields[name]) if name in fields else None


def known_fields(element: Element, known: Collection[str], *nested: str) -> dict[str, str]:
    """The texts of the child elements, by name; those that `nested` names may hold elements.

    Raises InvalidArgument for any other element, such as `DLQPolicy` of newer SDKs: to accept and drop it would lose
    what its sender counts on. Raises MalformedXml as `fields_of` does.
    """
    if unknown := {local_name(child) for child in element}.difference(known, nested):
        raise InvalidArgument(f"{', '.join(sorted(unknown))[:200]}: not supported by this server")
    return fields_of(element, *nested)


def boolean(name: str, text: str) -> bool:
    """`True` or `False`, in any case; raises InvalidArgument."""
    value = text.strip().lower()
    if value not in ("true", "false"):
        raise InvalidArgument(f"{name} must be True or False")
    return value == "true"
