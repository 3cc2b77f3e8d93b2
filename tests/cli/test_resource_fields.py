"""Files that describe resources: misspelt keys and file names, which are seen without a server."""

import pytest

from flowserver.api.rest.models.flows import UpdateFlow
from flowserver.api.rest.models.functions import PutFunction
from flowserver.api.rest.models.schedules import PutSchedule
from flowserver.cli.resource_fields import FIELDS, OVERLAPS
from flowserver.hosting.host_file import FunctionEntry
from flowserver.machine.schedules.state import Overlap


@pytest.mark.parametrize(
    ("kind", "model", "others"),
    [
        ("settings", UpdateFlow, {"-definition"}),
        ("function", PutFunction, {"headersFromEnv"}),
        ("hosted function", FunctionEntry, set()),
        ("schedule", PutSchedule, set()),
    ],
)
def test_the_fields_are_those_of_the_server(kind, model, others):
    names = {field.alias or name for name, field in model.model_fields.items()}
    assert set(FIELDS[kind]) ^ names == {each.lstrip("-") for each in others}


def test_the_overlap_policies_are_those_of_the_server():
    assert tuple(Overlap) == OVERLAPS


@pytest.mark.parametrize(
    ("file", "text", "said"),
    [
        (
            "functions.yaml",
            "functions: {s/f: {ulr: 'http://h', timeoutSecond: 3}}",
            [
                "s/f: `ulr` is unknown; did you mean `url`?",
                "s/f: `timeoutSecond` is unknown; did you mean `timeoutSeconds`?",
            ],
        ),
        (
            "functions.yaml",
            "functions: {s/f: {handlr: 'a.py:h'}, s/g: {url: 'http://h', handlers: x}}",
            [
                "s/f: `handlr` is unknown; did you mean `handler`?",
                "s/g: `handlers` is unknown; did you mean `headers`?",
            ],
        ),
        (
            "schedules.yaml",
            "schedules: {a/b: {cronExpresion: '@every 5m', timezone: UTC}}",
            [
                "a/b: `cronExpresion` is unknown; did you mean `cronExpression`?",
                "a/b: `timezone` is unknown; did you mean `timeZone`?",
            ],
        ),
        (
            "flows.yaml",
            "flows: {a: {retentiondays: 3}}",
            ["a: `retentiondays` is unknown; did you mean `retentionDays`?"],
        ),
    ],
)
def test_misspelt_keys(run, tmp_path, file, text, said):
    (tmp_path / file).write_text(text)
    refused = run("apply", tmp_path)
    assert (refused.exit_code, refused.stdout) == (2, "")
    assert refused.stderr.splitlines() == [f"flowserver: {tmp_path / file}: {each}" for each in said]


@pytest.mark.parametrize("key", ["schedules", "functions", "flows"])
@pytest.mark.parametrize("command", ["apply", "validate"])
def test_a_file_name_in_the_singular(run, tmp_path, command, key):
    file = tmp_path / f"{key[:-1]}.yaml"
    file.write_text(f"# mine\n{key}: {{}}\n")
    refused = run(command, tmp_path)
    assert (refused.exit_code, refused.stdout) == (2, "")
    assert refused.stderr == f"flowserver: {file} holds {key}: call it {key}.yaml\n"
    file.write_text("version: v1\ntype: flow\nsteps: [{type: pass, name: a}]\n")
    assert run("validate", tmp_path).exit_code == 0
