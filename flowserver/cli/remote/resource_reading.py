"""Reads the files that describe resources, and finds all mistakes in them that are seen without a server."""

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from flowserver.base.lazy_import import load
from flowserver.base.names import NAME_RULE, is_name
from flowserver.cli.failures import CommandFailed
from flowserver.cli.remote.resources import Entry, FlowFile, FunctionEntry, Resource, ScheduleEntry, SettingsEntry
from flowserver.cli.remote.session import read_text
from flowserver.cli.resource_fields import overlap_of, unknown_fields
from flowserver.cli.resource_files import FLOWS_FILE, FUNCTIONS_FILE, SCHEDULES_FILE, files_in
from flowserver.flowtests.file_names import flow_name_of

HEADERS_FROM_ENV: Final = "headersFromEnv"

_YAML_FILE: Final = "flowserver.cli.yaml_text:read_mapping"

_MAPPINGS: Final = {
    FUNCTIONS_FILE: ("functions", "of service/function to registrations"),
    FLOWS_FILE: ("flows", "of flows to settings; a file of this name holds no definition"),
    SCHEDULES_FILE: ("schedules", "of flow/name to fields"),
}

Hosted = Callable[[Path, Sequence[str]], None]

Entries = Mapping[str, tuple[Any, Entry]]
"""What a file has by name, each with its place."""


class ResourceReader:
    """Reads files; `mistakes` has those of all files, each with its place.

    `hosted` is called with the functions of a file that have handlers: they are for another command.
    """

    def __init__(self, hosted: Hosted) -> None:
        self.mistakes: list[str] = []
        self._hosted = hosted
        self._files: dict[str, Path] = {}

    def read(self, paths: Sequence[Path]) -> list[Resource]:
        """The resources without mistakes: functions, then flows, their settings, then schedules, each by name.

        Raises CommandFailed for a folder without files, or OSError for a file that is missing.
        """
        order = ("function", "flow", "settings", "schedule")
        found = [resource for file in files_in(paths) for resource in self._of_file(file)]
        return sorted(found, key=lambda each: (order.index(each.kind), each.name))

    def _of_file(self, file: Path) -> Iterator[Resource]:
        if file.name not in _MAPPINGS:
            yield from self._flow(file)
            return
        key, wanted = _MAPPINGS[file.name]
        try:
            lines = load(_YAML_FILE)(file)
        except CommandFailed as error:
            self.mistakes.append(str(error))
            return
        entries = lines.content.get(key)
        if not isinstance(entries, dict):
            self.mistakes.append(f"{file} lacks a mapping `{key}` {wanted}")
            return
        read: dict[str, Callable[[Entries], Iterator[Resource]]] = {
            FUNCTIONS_FILE: self._functions,
            FLOWS_FILE: self._settings,
            SCHEDULES_FILE: self._schedules,
        }
        placed = {str(name): (given, Entry(file, lines, (key, str(name)))) for name, given in entries.items()}
        yield from read[file.name](placed)

    def _flow(self, file: Path) -> Iterator[Resource]:
        name = flow_name_of(file)
        if not is_name(name):
            self.mistakes.append(f"{file}: the flow is named as its file, and {name!r} is no name: it {NAME_RULE}")
        elif name in self._files:
            self.mistakes.append(f"{self._files[name]} and {file} both describe the flow {name}")
        else:
            self._files[name] = file
            yield FlowFile(name, read_text(str(file)), file)

    def _functions(self, entries: Entries) -> Iterator[FunctionEntry]:
        """The functions that have a `url`; those with a handler are for the program that hosts them."""
        with_handlers: dict[Path, list[str]] = {}
        for name, (given, entry) in entries.items():
            if not self._has_known_fields("function", given, entry):
                continue
            has_handler = isinstance(given, str) or (isinstance(given, dict) and "handler" in given)
            if has_handler is (isinstance(given, dict) and "url" in given):
                wanted = "a `url`, where it is, or a `handler`, which is hosted; not both"
                self._mistake(entry, f"{name} must have {wanted}")
            elif has_handler:
                with_handlers.setdefault(entry.file, []).append(name)
            elif (headers := self._headers(given, entry)) is not None:
                own = {key: value for key, value in given.items() if key not in ("headers", HEADERS_FROM_ENV)}
                yield FunctionEntry(name, {**own, "headers": headers}, entry)
        for file, names in with_handlers.items():
            self._hosted(file, names)

    def _headers(self, given: Mapping[str, Any], entry: Entry) -> dict[str, str] | None:
        """The headers with those from the environment; None if one of these is not set."""
        variables = given.get(HEADERS_FROM_ENV) or {}
        missing = sorted({each for each in variables.values() if each not in os.environ})
        for each in missing:
            self._mistake(entry, f"the variable {each} is not set", HEADERS_FROM_ENV)
        if missing:
            return None
        return {**(given.get("headers") or {}), **{name: os.environ[variable] for name, variable in variables.items()}}

    def _settings(self, entries: Entries) -> Iterator[SettingsEntry]:
        for name, (given, entry) in entries.items():
            if not isinstance(given, dict) or not given:
                self._mistake(entry, f"{name} must be a mapping of settings")
            elif "definition" in given:
                self._mistake(entry, f"{name}: a definition has a file of its own, {name}.yaml", "definition")
            elif self._has_known_fields("settings", given, entry):
                yield SettingsEntry(name, given, entry)

    def _schedules(self, entries: Entries) -> Iterator[ScheduleEntry]:
        for name, (given, entry) in entries.items():
            if not self._has_known_fields("schedule", given, entry):
                continue
            if not isinstance(given, dict) or "cronExpression" not in given or name.count("/") != 1:
                self._mistake(entry, f"{name} must be flow/name with a `cronExpression`")
                continue
            overlap = {"overlap": overlap_of(given["overlap"])} if "overlap" in given else {}
            yield ScheduleEntry(name, {**given, **overlap}, entry)

    def _has_known_fields(self, kind: str, given: Any, entry: Entry) -> bool:
        """Whether the entry has no keys that it cannot have; each of them is a mistake."""
        unknown = unknown_fields(kind, given)
        for key, said in unknown.items():
            self._mistake(entry, f"{entry.keys[1]}: {said}", key)
        return not unknown

    def _mistake(self, entry: Entry, said: str, *inside: str) -> None:
        self.mistakes.append(f"{entry.place_of(*inside)}: {said}")
