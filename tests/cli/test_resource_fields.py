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
                "19: s/f: `ulr` is unknown; did you mean `url`?",
                "36: s/f: `timeoutSecond` is unknown; did you mean `timeoutSeconds`?",
            ],
        ),
        (
            "functions.yaml",
            "functions: {s/f: {handlr: 'a.py:h'}, s/g: {url: 'http://h', handlers: x}}",
            [
                "19: s/f: `handlr` is unknown; did you mean `handler`?",
                "61: s/g: `handlers` is unknown; did you mean `headers`?",
            ],
        ),
        (
            "schedules.yaml",
            "schedules: {a/b: {cronExpresion: '@every 5m', timezone: UTC}}",
            [
                "19: a/b: `cronExpresion` is unknown; did you mean `cronExpression`?",
                "47: a/b: `timezone` is unknown; did you mean `timeZone`?",
            ],
        ),
        (
            "flows.yaml",
            "flows: {a: {retentiondays: 3}}",
            ["13: a: `retentiondays` is unknown; did you mean `retentionDays`?"],
        ),
    ],
)
def test_misspelt_keys(run, tmp_path, file, text, said):
    (tmp_path / file).write_text(text)
    refused = run("apply", tmp_path)
    assert (refused.exit_code, refused.stdout) == (2, "")
    assert refused.stderr.splitlines() == [f"flowserver: {tmp_path / file}:1:{each}" for each in said]


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


@pytest.mark.parametrize("name", ["order.flow.yml", "order.flow.yaml", "order.fdl.yml", "order.yaml", "order.json"])
def test_a_flow_is_named_as_its_file(run, server, tmp_path, name):
    (tmp_path / name).write_text("version: v1\ntype: flow\nsteps:\n- {type: pass, name: a}\n")
    applied = run("apply", tmp_path / name, "--dry-run", "--server", server.url)
    assert (applied.exit_code, applied.stdout) == (0, "flow/order created\n")


def test_all_mistakes_of_all_files_are_shown_with_their_places(run, server, tmp_path):
    files = {
        "functions.yaml": "functions:\n  s/f:\n    ulr: h\n  s/g: {url: 'http://h', headersFromEnv: {A: NO_SUCH}}\n",
        "schedules.yaml": "schedules:\n  order/nightly:\n    cron: 5m\n  order: {cronExpression: '@every 5m'}\n",
        "flows.yaml": "flows:\n  order: {retention: 5}\n  parcel: 5\n",
        "two words.yaml": "{}",
        "order.yaml": "version: v1\ntype: flow\nsteps: []\n",
    }
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    refused = run("apply", tmp_path, "--server", server.url)
    assert refused.exit_code == 2
    lines = refused.stderr.replace("flowserver: ", "").splitlines()
    said = [line.removeprefix(f"{tmp_path}/") for line in lines]
    assert said[0].startswith("order.yaml:3:8: error[empty-list]")
    assert sorted(said[1:]) == [
        "flows.yaml:2:11: order: `retention` is unknown; did you mean `retentionDays`?",
        "flows.yaml:3:3: parcel must be a mapping of settings",
        "functions.yaml:3:5: s/f: `ulr` is unknown; did you mean `url`?",
        "functions.yaml:4:26: the variable NO_SUCH is not set",
        "schedules.yaml:3:5: order/nightly: `cron` is unknown; did you mean `cronExpression`?",
        "schedules.yaml:4:3: order must be flow/name with a `cronExpression`",
        "two words.yaml: the flow is named as its file, and 'two words' is no name: it must be 1-128 letters, digits, "
        "'_' or '-', and not start with a digit or '-'",
    ]
