"""Other programs accept the OpenAPI document."""

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator
from openapi_spec_validator import validate

from flowserver.api.rest.openapi import openapi_document
from flowserver.api.rest.router import ROUTERS
from tests.openapi.conftest import FOLDER
from tests.support.node import NODE
from tests.support.server import clean_environment

DOCUMENT = openapi_document(ROUTERS)
BIN = FOLDER / "node_modules" / ".bin"


def test_the_standards_own_schema_accepts_it() -> None:
    validate(DOCUMENT)


@pytest.mark.parametrize(
    ("program", "options"),
    [("redocly", ["lint", "--max-problems=10"]), ("spectral", ["lint", "--fail-severity=error", "--ruleset"])],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_linter_accepts_it(program: str, options: list[str], document: Path, tmp_path: Path) -> None:
    ruleset = tmp_path / "ruleset.yaml"
    ruleset.write_text("extends: spectral:oas\n")
    last = [str(ruleset)] if program == "spectral" else []
    done = subprocess.run(
        [NODE, str(BIN / program), *options, *last, str(document)],
        cwd=tmp_path,
        env=clean_environment() | {"REDOCLY_TELEMETRY": "off", "REDOCLY_SUPPRESS_UPDATE_NOTICE": "true", "CI": "true"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr


def _shown(part: Any, place: str = "") -> Iterator[tuple[str, dict[str, Any], Any]]:
    """Each example and default: where it is, its schema, and the value."""
    if isinstance(part, list):
        for number, each in enumerate(part):
            yield from _shown(each, f"{place}/{number}")
    if not isinstance(part, dict):
        return
    if "schema" in part:
        if "example" in part:
            yield place, part["schema"], part["example"]
        for name, example in part.get("examples", {}).items():
            yield f"{place} {name}", part["schema"], example["value"]
    if isinstance(part.get("examples"), list):
        for example in part["examples"]:
            yield f"{place} example", part, example
    if {"type", "anyOf", "enum", "$ref"} & part.keys() and not isinstance(part.get("default", {}), dict):
        yield f"{place} default", part, part["default"]
    for name, each in part.items():
        if name not in ("example", "examples", "default"):
            yield from _shown(each, f"{place}/{name}")


def test_every_example_and_default_has_the_form_that_it_shows() -> None:
    shown = list(_shown(json.loads(json.dumps(DOCUMENT))))
    assert len(shown) > 300
    for place, schema, value in shown:
        checked = Draft202012Validator({**schema, "components": DOCUMENT["components"]})
        assert [f"{place}: {error.message}" for error in checked.iter_errors(value)] == []
