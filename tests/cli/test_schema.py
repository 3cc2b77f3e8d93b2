"""`flowserver schema`: what it prints, and where the files of the installation are."""

import json
from pathlib import Path

import pytest

from flowserver.base.limits import Limits
from flowserver.cli.exit_codes import ExitCode
from flowserver.editing.flow_schema import flow_schema
from flowserver.editing.flow_test_schema import flow_test_schema


@pytest.mark.parametrize(
    ("words", "schema"), [((), flow_schema), (("flow",), flow_schema), (("flowtest",), flow_test_schema)]
)
def test_it_prints_the_schema(run, words, schema):
    result = run("schema", *words)
    assert (result.exit_code, json.loads(result.stdout)) == (ExitCode.DONE, schema(Limits()))


def test_with_the_limits_of_the_cloud(run, monkeypatch):
    wanted = flow_schema(Limits.of("cloud"))
    assert json.loads(run("schema", "--limits", "cloud").stdout) == wanted
    monkeypatch.setenv("FLOWSERVER_LIMITS", "cloud")
    assert json.loads(run("schema").stdout) == wanted


@pytest.mark.parametrize("kind", ["flow", "flowtest"])
def test_the_path_of_the_file(run, kind):
    file = Path(run("schema", kind, "--path").stdout.strip())
    assert file.read_text("utf-8") == run("schema", kind).stdout


def test_another_kind(run):
    assert run("schema", "functions").exit_code == ExitCode.USAGE
