"""Every setting is a flag of `serve` and an environment variable; the flag wins, and errors are named."""

from pathlib import Path

import pytest
import typer
from pydantic import SecretStr

from flowserver.cli.options import FLAGGED, flag_of, read_settings, variable_of
from flowserver.settings import Settings
from tests.cli.conftest import one_line

FILE = Path(__file__).parent / "settings.yaml"

KEY, OTHER_KEY = f"{'A' * 43}=", f"{'B' * 43}="
KEY_FILE = FILE.parent / "secrets.key"

EXAMPLES = {
    "settings": (str(FILE), FILE),
    "host": ("0.0.0.0", "0.0.0.0"),
    "port": ("9000", 9000),
    "database_url": ("sqlite:///x.db", "sqlite:///x.db"),
    "migrate": ("true", True),
    "limits": ("cloud", "cloud"),
    "lenient": ("true", True),
    "missing_source": ("fail", "fail"),
    "child_lifecycle": ("independent", "independent"),
    "queue_bodies": ("plain", "plain"),
    "allowed_hosts": ("a, b", ["a", "b"]),
    "queues": ("a=nats://x/s?stream=t b=nats://y,z", {"a": "nats://x/s?stream=t", "b": "nats://y,z"}),
    "console": ("false", False),
    "processes": ("2", 2),
    "drain_seconds": ("1.5", 1.5),
    "retention_days": ("7", 7),
    "retention_gib": ("0.5", 0.5),
    "log_level": ("debug", "debug"),
    "log_format": ("json", "json"),
    "access_log": ("true", True),
    "disk_reserve_mib": ("64", 64),
    "data_gib_max": ("2.5", 2.5),
    "tracing": ("otlp", "otlp"),
    "audit": ("all", "all"),
    "audit_days": ("7", 7),
    "cell": ("north", "north"),
    "signing_secrets_file": ("secrets", Path("secrets")),
    "private_functions": ("false", False),
    "function_networks_allowed": ("10.1.0.0/16,*.example", ["10.1.0.0/16", "*.example"]),
    "function_networks_denied": ("::/0", ["::/0"]),
    "secrets_key": (f"{KEY}, {OTHER_KEY}", [SecretStr(KEY), SecretStr(OTHER_KEY)]),
    "secrets_key_file": (str(KEY_FILE), KEY_FILE),
    "region": ("cn-beijing", "cn-beijing"),
}
OTHERS = {
    "database_url": ("sqlite:///y.db", "sqlite:///y.db"),
    "settings": (FILE.parent / ".." / "cli" / FILE.name,) * 2,
    "secrets_key_file": (KEY_FILE.parent / ".." / "cli" / KEY_FILE.name,) * 2,
    "migrate": (False, False),
    "console": (True, True),
    "allowed_hosts": (["c"], ["c"]),
    "signing_secrets_file": (Path("others"), Path("others")),
    "private_functions": (True, True),
    "function_networks_allowed": (["c"], ["c"]),
    "function_networks_denied": (["d"], ["d"]),
    "queues": (["c=d"], {"c": "d"}),
}
"""Values of flags for settings without a default."""


@pytest.mark.parametrize("name", FLAGGED)
def test_every_setting_is_in_the_help(run, name):
    text = " ".join(run("serve", "--help").stdout.split())
    follows = " / --no-" if name in ("migrate", "lenient", "console", "private_functions", "access_log") else " <"
    assert f" {flag_of(name)}{follows}" in text
    assert Settings.model_fields[name].description in text
    assert f"[env: {variable_of(name)}" in text


@pytest.mark.parametrize("name", Settings.model_fields)
def test_every_setting_can_come_from_the_environment(monkeypatch, name):
    text, value = EXAMPLES[name]
    monkeypatch.setenv(variable_of(name), text)
    assert getattr(read_settings({name: None}), name) == value


@pytest.mark.parametrize("name", FLAGGED)
def test_flags_override_the_environment(monkeypatch, name):
    monkeypatch.setenv(variable_of(name), EXAMPLES[name][0])
    flag, value = OTHERS.get(name, [Settings.model_fields[name].default] * 2)
    assert getattr(read_settings({name: flag}), name) == value


@pytest.mark.parametrize(
    ("variable", "value", "words"),
    [
        ("FLOWSERVER_PORT", "http", "must be an integer from 0 to 65535"),
        ("FLOWSERVER_PORT", "65536", "must be an integer from 0 to 65535"),
        ("FLOWSERVER_LIMITS", "none", "'default' or 'cloud'"),
        ("FLOWSERVER_RETENTION_GIB", "nan", "must be a number of 0 or more"),
        ("FLOWSERVER_MIGRATE", "perhaps", "must be true or false"),
        ("FLOWSERVER_QUEUES", "a=nats://x nats://y", "each queue must be written NAME=URL, once"),
        ("FLOWSERVER_QUEUES", "a=nats://x a=nats://y", "each queue must be written NAME=URL, once"),
    ],
)
def test_errors_in_the_environment_name_the_variable(run, monkeypatch, variable, value, words):
    monkeypatch.setenv(variable, value)
    result = run("serve")
    assert result.exit_code == 2
    assert f"Invalid value for {variable}: " in result.stderr
    assert words in result.stderr


@pytest.mark.parametrize(
    "arguments", [["--port", "65536"], ["--port", "http"], ["--limits", "none"], ["--drain-seconds", "-1"]]
)
def test_errors_in_flags_name_the_flag(run, arguments):
    result = run("serve", *arguments)
    assert result.exit_code == 2
    assert arguments[0] in result.stderr.partition("Invalid value for ")[2]


def test_a_flag_beside_an_invalid_variable(monkeypatch):
    monkeypatch.setenv("FLOWSERVER_LOG_LEVEL", "loud")
    with pytest.raises(typer.BadParameter) as raised:
        read_settings({"port": 1})
    assert raised.value.param_hint == "FLOWSERVER_LOG_LEVEL"


def test_all_errors_are_named_at_once(run, monkeypatch, tmp_path):
    file = tmp_path / "mine.yaml"
    file.write_text("drain_secnds: 3\nretention_days: -1\nsettings: x\nprocesses: many\n")
    monkeypatch.setenv("FLOWSERVER_SETTINGS", str(file))
    monkeypatch.setenv("FLOWSERVER_PORT", "http")
    monkeypatch.setenv("FLOWSERVER_LIMITS", "none")
    mistakes = [
        f"FLOWSERVER_SETTINGS: {file}, line 1: there is no setting drain_secnds; did you mean drain_seconds?",
        f"FLOWSERVER_SETTINGS: {file}, line 3: there is no setting settings",
        "FLOWSERVER_PORT: must be an integer from 0 to 65535",
        "FLOWSERVER_LIMITS: must be 'default' or 'cloud'",
        f"processes in {file}, line 4: must be an integer from 1 to 2",
        f"retention_days in {file}, line 2: must be an integer from 0 to 36500",
    ]
    result = run("serve")
    assert result.exit_code == 2
    said = result.stderr.removeprefix(result.stderr.partition("Error: ")[0] + "Error: ")
    assert said.splitlines() == [f"Invalid value for {mistake}" for mistake in mistakes]

    for name in ("FLOWSERVER_PROT", "FLOWSERVER_TOEKN"):
        monkeypatch.setenv(name, "x")
    result = run("serve")
    assert result.exit_code == 2
    assert result.stderr.splitlines() == [
        "flowserver: FLOWSERVER_PROT is no setting of flowserver; unset it; did you mean FLOWSERVER_PORT?",
        "flowserver: FLOWSERVER_TOEKN is no setting of flowserver; unset it; did you mean FLOWSERVER_TOKEN?",
        *(f"flowserver: Invalid value for {mistake}" for mistake in mistakes),
    ]


def test_a_file_that_is_not_yaml_hides_no_errors_of_the_environment(run, monkeypatch, tmp_path):
    file = tmp_path / "mine.yaml"
    file.write_text("port: [\n")
    monkeypatch.setenv("FLOWSERVER_PROCESSES", "3")
    said = run("serve", "--settings", file).stderr
    assert f"Invalid value for --settings: {file}:2:1 is not valid YAML" in said
    assert "Invalid value for FLOWSERVER_PROCESSES: must be an integer from 1 to 2" in said


@pytest.mark.parametrize("command", [["doctor"], ["serve"], ["functions", "list"], ["validate", "-"]])
@pytest.mark.parametrize(
    ("variable", "hint"),
    [
        ("FLOWSERVER_DATABSE_URL", "; did you mean FLOWSERVER_DATABASE_URL?"),
        ("FLOWSERVER_TOEKN", "; did you mean FLOWSERVER_TOKEN?"),
        ("flowserver_limit", "; did you mean FLOWSERVER_LIMITS?"),
        ("FLOWSERVER_QQQQQQQQ", ""),
    ],
)
def test_a_misspelt_variable_is_refused_by_every_command(run, monkeypatch, command, variable, hint):
    monkeypatch.setenv(variable, "x")
    result = run(*command)
    assert result.exit_code == 2
    assert one_line(result) == f"flowserver: {variable} is no setting of flowserver; unset it{hint}"


def test_variables_of_commands_and_of_other_programs_are_known(run, monkeypatch):
    for name in ("FLOWSERVER_URL", "FLOWSERVER_TOKEN", "_FLOWSERVER_COMPLETE_ARGS", "MY_FLOWSERVER_X"):
        monkeypatch.setenv(name, "http://127.0.0.1:1")
    assert run("validate", "-", stdin="version: v1\ntype: flow\nsteps: [{type: pass, name: p}]").exit_code == 0
