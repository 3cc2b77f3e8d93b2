"""The settings file: the environment overrides it, and each error in it is reported with its line."""

from pathlib import Path

import pytest
import typer

from flowserver.cli.options import read_settings
from tests.cli.conftest import one_line
from tests.support.server import ServerProcess

FILE = Path(__file__).parent / "settings.yaml"


@pytest.fixture
def written(tmp_path):
    """Writes a settings file and returns its path."""

    def write(text: str) -> str:
        file = tmp_path / "mine.yaml"
        file.write_text(text)
        return str(file)

    return write


def test_each_kind_of_value_can_come_from_the_file():
    settings = read_settings({"settings": FILE})
    assert (settings.port, settings.missing_source, settings.drain_seconds) == (9001, "null", 2.5)
    assert settings.allowed_hosts == ["a.example", "b.example"]
    assert settings.queues == {"orders": "nats://broker.example/shop.orders"}
    assert settings.host == "127.0.0.1"


def test_variables_override_the_file_and_flags_override_both(monkeypatch):
    monkeypatch.setenv("FLOWSERVER_SETTINGS", str(FILE))
    monkeypatch.setenv("FLOWSERVER_PORT", "9002")
    monkeypatch.setenv("FLOWSERVER_ALLOWED_HOSTS", "c")
    settings = read_settings({"drain_seconds": 1, "queues": ["d=nats://x"]})
    assert (settings.port, settings.allowed_hosts, settings.drain_seconds) == (9002, ["c"], 1)
    assert settings.queues == {"d": "nats://x"}


def test_an_empty_variable_names_no_file(monkeypatch):
    monkeypatch.setenv("FLOWSERVER_SETTINGS", "")
    assert read_settings({}).port == 8080


def test_an_empty_file_sets_nothing(written):
    assert read_settings({"settings": written("# later\n")}).port == 8080
    assert read_settings({"settings": written("queues:\n")}).queues == {}


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("port: 1\nprot: 2\n", "mine.yaml, line 2: there is no setting prot; did you mean port?"),
        ("- port\n", "mine.yaml must be a mapping of settings"),
        ("settings: other.yaml\n", "mine.yaml, line 1: there is no setting settings"),
        ("port: 1\nport: 2\n", "port appears twice"),
        ("port: [\n", "is not valid YAML"),
        ("host: \xff", "is not valid YAML"),
    ],
)
def test_files_without_settings(tmp_path, monkeypatch, text, words):
    file = tmp_path / "mine.yaml"
    file.write_bytes(text.encode("latin-1"))
    for given, origin in ((str(file), "--settings"), (None, "FLOWSERVER_SETTINGS")):
        monkeypatch.setenv("FLOWSERVER_SETTINGS", str(file))
        with pytest.raises(typer.BadParameter) as raised:
            read_settings({"settings": given})
        assert raised.value.param_hint == origin
        assert words in raised.value.message


@pytest.mark.parametrize(
    ("text", "origin", "words"),
    [
        ("host: a\nport: http\n", "port in {}, line 2", "an integer from 0 to 65535"),
        ("port:\n", "port in {}, line 1", "an integer from 0 to 65535"),
        ("queues:\n  a: nats://x\n  b: 1\n", "queues in {}, line 3", "valid string"),
        ("allowed_hosts:\n- a\n- [b]\n", "allowed_hosts in {}, line 3", "valid string"),
    ],
)
def test_invalid_values_are_reported_with_their_line(written, text, origin, words):
    file = written(text)
    with pytest.raises(typer.BadParameter) as raised:
        read_settings({"settings": file})
    assert raised.value.param_hint == origin.format(file)
    assert words in raised.value.message


def test_an_invalid_variable_is_reported_also_if_there_is_a_file(monkeypatch):
    monkeypatch.setenv("FLOWSERVER_PORT", "http")
    with pytest.raises(typer.BadParameter) as raised:
        read_settings({"settings": FILE})
    assert raised.value.param_hint == "FLOWSERVER_PORT"


def test_queues_with_an_invalid_url_keep_the_server_from_starting(run, written, new_url):
    file = written("queues:\n  orders: amqp://user:secret@broker\n")
    result = run("serve", "--settings", file, "--database-url", new_url)
    assert result.exit_code == 2
    assert one_line(result).startswith("flowserver: the setting queues, orders: the URL is not of the form nats://")
    assert "secret" not in result.stderr


def test_a_file_that_does_not_exist(run, tmp_path):
    result = run("serve", "--settings", tmp_path / "none.yaml")
    assert result.exit_code == 3
    assert one_line(result) == f"flowserver: {tmp_path / 'none.yaml'}: No such file or directory"


def test_commands_use_the_file_that_the_environment_names(run, monkeypatch, written, sqlite_url):
    monkeypatch.setenv("FLOWSERVER_SETTINGS", written(f"database_url: {sqlite_url}\n"))
    assert run("keys", "list").exit_code == 0


def test_a_server_with_a_settings_file(written, new_url):
    file = written(f"database_url: {new_url}\nlog_level: debug\n")
    with ServerProcess(None, "--settings", file) as server:
        assert f"  Data    {new_url.removeprefix('sqlite:///')}" in server.log
