"""What files can describe: flows, their settings (`flows.yaml`), functions (`functions.yaml`) and schedules
(`schedules.yaml`).
"""

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Protocol

from flowserver.base.hidden_values import HIDDEN
from flowserver.base.lazy_import import load
from flowserver.cli.exit_codes import ExitCode
from flowserver.cli.failures import CommandFailed
from flowserver.cli.remote.session import read_text
from flowserver.cli.resource_fields import mistakes_in, overlap_mistake, overlap_of, unknown_fields
from flowserver.cli.resource_files import FLOWS_FILE, FUNCTIONS_FILE, SCHEDULES_FILE, files_in
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

HEADERS_FROM_ENV: Final = "headersFromEnv"

_YAML_TEXT: Final = "flowserver.cli.yaml_text:yaml_text"
_YAML_FILE: Final = "flowserver.cli.yaml_text:read_mapping"


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
        """File, line and resource; the line is that of the finding's `field`, or else the entry's."""
        keys = [*self.keys, *(each for each in [finding.get("field")] if each)]
        return f"{self.file}:{self.lines.line_of(keys)}: {kind}/{self.keys[1]}"


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


def resources_in(paths: Sequence[Path], hosted: Callable[[Path, Sequence[str]], None]) -> list[Resource]:
    """What the files and folders describe: functions, then flows, their settings, then schedules, each by name.

    `hosted` is called with the functions of a file that have handlers: they are for another command. Raises
    CommandFailed, or OSError for a file that is missing.
    """
    order = ("function", "flow", "settings", "schedule")
    return sorted(_resources(paths, hosted), key=lambda each: (order.index(each.kind), each.name))


def _resources(paths: Sequence[Path], hosted: Callable[[Path, Sequence[str]], None]) -> Iterator[Resource]:
    names: dict[str, Path] = {}
    for file in files_in(paths):
        if file.name == FUNCTIONS_FILE:
            yield from _function_entries(file, hosted)
            continue
        if file.name == FLOWS_FILE:
            yield from _settings_entries(file)
            continue
        if file.name == SCHEDULES_FILE:
            yield from _schedule_entries(file)
            continue
        if file.stem in names:
            raise CommandFailed(f"{names[file.stem]} and {file} both describe the flow {file.stem}", ExitCode.USAGE)
        names[file.stem] = file
        yield FlowFile(file.stem, read_text(str(file)), file)


def _function_entries(file: Path, hosted: Callable[[Path, Sequence[str]], None]) -> Iterator[FunctionEntry]:
    """The functions that have a `url`; those with a handler are for the program that hosts them."""
    lines = load(_YAML_FILE)(file)
    entries = lines.content.get("functions")
    if not isinstance(entries, dict):
        raise CommandFailed(f"{file} lacks a mapping `functions` of service/function to registrations", ExitCode.USAGE)
    _require_known_fields(file, "function", entries)
    with_handlers = []
    for name, given in entries.items():
        has_handler = isinstance(given, str) or (isinstance(given, dict) and "handler" in given)
        if has_handler is (isinstance(given, dict) and "url" in given):
            reason = f"{file}: {name} must have a `url`, where it is, or a `handler`, which is hosted; not both"
            raise CommandFailed(reason, ExitCode.USAGE)
        if has_handler:
            with_handlers.append(str(name))
            continue
        headers = {**(given.get("headers") or {}), **_headers_from_env(file, given.get(HEADERS_FROM_ENV) or {})}
        own = {key: value for key, value in given.items() if key not in ("headers", HEADERS_FROM_ENV)}
        entry = Entry(file, lines, ("functions", str(name)))
        yield FunctionEntry(str(name), {**own, "headers": headers}, entry)
    if with_handlers:
        hosted(file, with_handlers)


def _settings_entries(file: Path) -> Iterator[SettingsEntry]:
    lines = load(_YAML_FILE)(file)
    entries = lines.content.get("flows")
    if not isinstance(entries, dict):
        reason = f"{file} lacks a mapping `flows` of flows to settings; a file of this name holds no definition"
        raise CommandFailed(reason, ExitCode.USAGE)
    for name, given in entries.items():
        if not isinstance(given, dict) or not given:
            raise CommandFailed(f"{file}: {name} must be a mapping of settings", ExitCode.USAGE)
        if "definition" in given:
            raise CommandFailed(f"{file}: {name}: a definition has a file of its own, {name}.yaml", ExitCode.USAGE)
    _require_known_fields(file, "settings", entries)
    for name, given in entries.items():
        yield SettingsEntry(str(name), given, Entry(file, lines, ("flows", str(name))))


def _schedule_entries(file: Path) -> Iterator[ScheduleEntry]:
    lines = load(_YAML_FILE)(file)
    entries = lines.content.get("schedules")
    if not isinstance(entries, dict):
        raise CommandFailed(f"{file} lacks a mapping `schedules` of flow/name to fields", ExitCode.USAGE)
    _require_known_fields(file, "schedule", entries)
    for name, given in entries.items():
        if not isinstance(given, dict) or "cronExpression" not in given or str(name).count("/") != 1:
            raise CommandFailed(f"{file}: {name} must be flow/name with a `cronExpression`", ExitCode.USAGE)
        overlap = {"overlap": overlap_of(given["overlap"])} if "overlap" in given else {}
        yield ScheduleEntry(str(name), {**given, **overlap}, Entry(file, lines, ("schedules", str(name))))


def _require_known_fields(file: Path, kind: str, entries: Mapping[Any, Any]) -> None:
    """Raises CommandFailed, which names every key that the entries cannot have."""
    if mistakes := [f"{file}: {each}" for each in unknown_fields(kind, entries)]:
        raise CommandFailed("\nflowserver: ".join(mistakes), ExitCode.USAGE)


def _error_of(id: str, message: str, field: str | None) -> Json:
    return {"severity": "error", "id": id, "message": message, "field": field}


def _headers_from_env(file: Path, variables: Mapping[str, str]) -> dict[str, str]:
    missing = sorted({each for each in variables.values() if each not in os.environ})
    if missing:
        raise CommandFailed(f"{file}: the variable {missing[0]} is not set", ExitCode.USAGE)
    return {name: os.environ[variable] for name, variable in variables.items()}


def _registration_text(registration: Mapping[str, Any], shown_value: str) -> str:
    """As YAML, with `shown_value` in place of the value of each header."""
    shown = dict(sorted(registration.items()))
    shown["headers"] = dict.fromkeys(sorted(shown.get("headers") or {}), shown_value)
    return _as_yaml(shown)


def _as_yaml(document: Mapping[str, Any]) -> str:
    text: str = load(_YAML_TEXT)(document)
    return text
