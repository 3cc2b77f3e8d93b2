"""What files can describe: flows, their settings (`flows.yaml`), functions (`functions.yaml`) and schedules
(`schedules.yaml`).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Protocol

from flowserver.base.hidden_values import HIDDEN
from flowserver.base.lazy_import import load
from flowserver.cli.resource_fields import mistakes_in, overlap_mistake
from flowserver.client.errors import Invalid, NotFound
from flowserver.client.results import Json

if TYPE_CHECKING:
    from flowserver.base.yaml_files import YamlFile
    from flowserver.client import Client

SECRET_HEADERS: Final = frozenset(("authorization", "cookie", "proxy-authorization", "x-api-key"))
"""Headers whose values are not typed: others see command lines."""

OTHER_VALUE: Final = "(hidden, and another value)"
"""Shown in place of the values that the server has of headers, if not all of them are those of the file."""

SERVER_FIELDS: Final = ("service", "function", "createdTime", "lastModifiedTime")
"""Of a registration; they cannot be sent."""

UNKNOWN_FLOW: Final = "unknown-flow"
"""The id of the finding that a flow is missing."""

_YAML_TEXT: Final = "flowserver.cli.yaml_text:yaml_text"


class Resource(Protocol):
    """Something that a file describes."""

    @property
    def kind(self) -> str:
        """`flow`, `settings` (of a flow), `function` or `schedule`."""

    @property
    def name(self) -> str:
        """Its name among those of its kind."""

    @property
    def text(self) -> str:
        """What it shall be, to compare with what it is."""

    def place_of(self, finding: Json) -> str:
        """Where the files have what the finding is about, as messages begin."""

    def current(self, client: "Client") -> str | None:
        """What it is at the server, as such a text; None if the server has none of this name."""

    def check(self, client: "Client") -> Sequence[Json]:
        """What the server finds in it, errors and warnings, before anything is written; or raises Invalid."""

    def apply(self, client: "Client", *, strict: bool = False) -> Sequence[Json]:
        """Make it so, and return what the server warns of; with `strict` it refuses that, which raises Invalid.

        Raises Conflict if it is not at the server what `current` has seen.
        """


@dataclass(frozen=True, slots=True)
class Entry:
    """Where a file has the entry of a resource."""

    file: Path
    lines: "YamlFile"
    keys: tuple[str, str]

    def of(self, finding: Json, kind: str) -> str:
        """File, line, column and resource; the place is that of the finding's `field`, or else the entry's."""
        return f"{self.place_of(finding.get('field'))}: {kind}/{self.keys[1]}"

    def place_of(self, *inside: str | None) -> str:
        """File, line and column of what the entry has at these keys, or else of the entry."""
        line, column = self.lines.place_of([*self.keys, *filter(None, inside)])
        return f"{self.file}:{line}:{column}"


@dataclass(slots=True)
class FlowFile:
    """A flow, named as its file."""

    name: str
    text: str
    file: Path
    kind: str = "flow"
    _seen: str | None = None

    def place_of(self, finding: Json) -> str:
        """File, line and column."""
        return f"{self.file}:{finding['line']}:{finding['column']}"

    def current(self, client: "Client") -> str | None:
        """The definition that the server has."""
        try:
            found = client.get_flow(self.name)
        except NotFound:
            return None
        self._seen = found.etag
        return found.definition

    def check(self, client: "Client") -> Sequence[Json]:
        """The findings in the definition."""
        findings: Sequence[Json] = client.validate(self.text).document["diagnostics"]
        return findings

    def apply(self, client: "Client", *, strict: bool = False) -> Sequence[Json]:
        """Create the flow or give it this definition."""
        is_new = self._seen is None
        return client.put_flow(self.name, self.text, if_match=self._seen, only_new=is_new, strict=strict).warnings


@dataclass(slots=True)
class SettingsEntry:
    """Settings of a flow, which its definition does not have, with the fields of the API."""

    name: str
    settings: Mapping[str, Any]
    entry: Entry
    kind: str = "settings"

    def place_of(self, finding: Json) -> str:
        """File, line and name."""
        return self.entry.of(finding, self.kind)

    @property
    def text(self) -> str:
        """The settings as YAML."""
        return _as_yaml(dict(sorted(self.settings.items())))

    def current(self, client: "Client") -> str | None:
        """The settings that the flow has; what the entry leaves open is not compared."""
        try:
            found = client.get_flow(self.name).document
        except NotFound:
            return None
        return _as_yaml({name: found.get(name) for name in sorted(self.settings)})

    def check(self, client: "Client") -> Sequence[Json]:
        """That the flow is missing; wrong settings raise Invalid."""
        try:
            client.patch_flow(self.name, dict(self.settings), dry_run=True)
        except NotFound:
            message = f"there is no flow `{self.name}`, and no file has its definition"
            target = {"kind": "flow", "name": self.name}
            return [{"severity": "error", "id": UNKNOWN_FLOW, "message": message, "target": target}]
        return ()

    def apply(self, client: "Client", *, strict: bool = False) -> Sequence[Json]:  # noqa: ARG002 - it has no warnings
        """Give the flow these settings."""
        client.patch_flow(self.name, dict(self.settings))
        return ()


@dataclass(slots=True)
class FunctionEntry:
    """A function's registration, with the fields of the API."""

    name: str
    registration: Mapping[str, Any]
    entry: Entry
    kind: str = "function"

    def place_of(self, finding: Json) -> str:
        """File, line and name."""
        return self.entry.of(finding, self.kind)

    @property
    def text(self) -> str:
        """The registration as YAML, without the values of headers."""
        return _registration_text(self.registration, HIDDEN)

    def current(self, client: "Client") -> str | None:
        """The registration that the server has; what the entry leaves open is not compared.

        Only the server can compare the values of headers.
        """
        try:
            found = client.get_function(self.name).document
        except NotFound:
            return None
        kept = {name: found.get(name) for name in self.registration}
        text = _registration_text(kept, HIDDEN)
        if text != self.text or not self.registration["headers"]:
            return text
        sent = {name: value for name, value in found.items() if name not in SERVER_FIELDS and value is not None}
        wanted = client.put_function(self.name, {**sent, **self.registration}, dry_run=True).document
        is_same = wanted["lastModifiedTime"] == found["lastModifiedTime"]
        return text if is_same else _registration_text(kept, OTHER_VALUE)

    def check(self, client: "Client") -> Sequence[Json]:
        """What the server will not call; an invalid registration raises Invalid."""
        return client.put_function(self.name, dict(self.registration), dry_run=True).warnings

    def apply(self, client: "Client", *, strict: bool = False) -> Sequence[Json]:  # noqa: ARG002 - checked before
        """Register the function."""
        return client.put_function(self.name, dict(self.registration)).warnings


@dataclass(slots=True)
class ScheduleEntry:
    """A schedule's fields, as the API names them."""

    name: str
    fields: Mapping[str, Any]
    entry: Entry
    kind: str = "schedule"

    def place_of(self, finding: Json) -> str:
        """File, line and name."""
        return self.entry.of(finding, self.kind)

    @property
    def text(self) -> str:
        """The fields as YAML."""
        return _as_yaml(dict(sorted(self.fields.items())))

    def current(self, client: "Client") -> str | None:
        """The schedule that the server has; what the entry leaves open is not compared."""
        try:
            found = client.get_schedule(*self._named).document
        except NotFound:
            return None
        return _as_yaml({name: found.get(name) for name in sorted(self.fields)})

    def check(self, client: "Client") -> Sequence[Json]:
        """What is doubtful, that its flow is missing, and wrong fields: all that can be found at once."""
        fields = dict(self.fields)
        mistakes: list[Json] = []
        if mistake := overlap_mistake(fields.get("overlap")):
            mistakes.append(_error_of("InvalidArgument", mistake, "overlap"))
            del fields["overlap"]
        try:
            found = client.put_schedule(*self._named, fields, dry_run=True).warnings
        except Invalid as error:
            return mistakes + [
                _error_of(error.code, text, field) for text, field in mistakes_in(error.detail, self.kind)
            ]
        return mistakes + [{**each, "severity": "error"} if each["id"] == UNKNOWN_FLOW else each for each in found]

    def apply(self, client: "Client", *, strict: bool = False) -> Sequence[Json]:
        """Create the schedule or change these fields."""
        return client.put_schedule(*self._named, dict(self.fields), strict=strict).warnings

    @property
    def _named(self) -> tuple[str, str]:
        flow, _, name = self.name.partition("/")
        return flow, name


def _error_of(id: str, message: str, field: str | None) -> Json:
    return {"severity": "error", "id": id, "message": message, "field": field}


def _registration_text(registration: Mapping[str, Any], shown_value: str) -> str:
    """As YAML, with `shown_value` in place of the value of each header."""
    shown = dict(sorted(registration.items()))
    shown["headers"] = dict.fromkeys(sorted(shown.get("headers") or {}), shown_value)
    return _as_yaml(shown)


def _as_yaml(document: Mapping[str, Any]) -> str:
    text: str = load(_YAML_TEXT)(document)
    return text
