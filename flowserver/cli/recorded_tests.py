"""Writes recorded tests into a flow test file: a new file, or behind the tests of an existing one."""

import os
from pathlib import Path
from typing import Any, Final

import yaml

from flowserver.base.json_values import JsonObject
from flowserver.cli.exit_codes import ExitCode
from flowserver.cli.failures import CommandFailed
from flowserver.cli.yaml_text import yaml_text
from flowserver.flowtests.cases import TestFile
from flowserver.flowtests.file_names import SUFFIX, flow_name_of

_HEAD: Final = "# Recorded by flowserver sim.\n"


def write_tests(file: Path, tested: TestFile, tests: list[JsonObject]) -> None:
    """Add the tests to the file, with its text as it is; raises CommandFailed, and then writes nothing."""
    if not file.name.endswith(SUFFIX):
        raise CommandFailed(f"{file} is no flow test: their names end in {SUFFIX}", ExitCode.USAGE)
    definition = os.path.relpath(tested.source.file, file.parent)
    if not file.exists():
        name = {} if tested.flow_name == flow_name_of(tested.source.file) else {"name": tested.flow_name}
        file.write_text(_HEAD + yaml_text({"flow": definition, **name, "tests": tests}), "utf-8")
        return
    before = file.read_text("utf-8")
    after = _with(before, tests)
    if after is None or yaml.safe_load(after) != _expected(before, tests):
        message = f"{file}: `tests` is not a list in block style; record into another file"
        raise CommandFailed(message, ExitCode.CONFLICT)
    file.write_text(after, "utf-8")


def without_known(file: Path, tests: list[JsonObject]) -> list[JsonObject]:
    """The tests whose names the file does not have yet."""
    known = yaml.safe_load(file.read_text("utf-8")) if file.exists() else None
    names = [each.get("name") for each in (known or {}).get("tests") or () if isinstance(each, dict)]
    return [test for test in tests if test["name"] not in names]


def _expected(text: str, tests: list[JsonObject]) -> Any:
    document = yaml.safe_load(text)
    return {**document, "tests": [*(document.get("tests") or ()), *tests]}


def _with(text: str, tests: list[JsonObject]) -> str | None:
    """The text with the tests behind it; None if there is no place for them."""
    root = yaml.compose(text, yaml.SafeLoader)
    if not isinstance(root, yaml.MappingNode) or root.flow_style or not root.value:
        return None
    whole = text if text.endswith("\n") else f"{text}\n"
    keys = [key.value for key, _ in root.value]
    if "tests" not in keys:
        return whole + yaml_text({"tests": tests})
    position = keys.index("tests")
    there = root.value[position][1]
    if not isinstance(there, yaml.SequenceNode) or there.flow_style:
        return None
    lines = whole.splitlines(keepends=True)
    end = len(lines)
    if position + 1 < len(keys):
        end = root.value[position + 1][0].start_mark.line
        while not lines[end - 1].strip() or lines[end - 1].lstrip().startswith("#"):
            end -= 1  # what is said before the next attribute stays with it
    indent = " " * there.start_mark.column
    added = (f"{indent}{line}\n" if line else "\n" for line in yaml_text(tests).splitlines())
    return "".join([*lines[:end], *added, *lines[end:]])
