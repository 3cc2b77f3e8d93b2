"""The program as a whole: versions, help, usage."""

import subprocess
import sys

import pytest
from typer import Context
from typer.core import TyperGroup
from typer.main import get_command

from flowserver import __version__
from flowserver.cli.main import COMMANDS as ENTRIES
from flowserver.cli.main import app
from tests.support.server import clean_environment


def _commands(group=None, names=()):
    """The words of every command."""
    for name, command in (group or get_command(app)).commands.items():
        if isinstance(command, TyperGroup):
            yield from _commands(command, (*names, name))
        else:
            yield (*names, name)


COMMANDS = list(_commands())


def test_module_is_the_program():
    command = [sys.executable, "-m", "flowserver", "--version"]
    assert subprocess.run(command, capture_output=True, text=True).stdout == f"flowserver {__version__}\n"


@pytest.mark.parametrize("variable", ["FLOWSERVER_TOKEN", "FLOWSERVER_TOEKN"])
def test_the_version_is_shown_with_any_variable(run, monkeypatch, variable):
    monkeypatch.setenv(variable, "x")
    shown = run("--version")
    assert (shown.exit_code, shown.stdout, shown.stderr) == (0, f"flowserver {__version__}\n", "")


@pytest.mark.parametrize("names", COMMANDS, ids=" ".join)
@pytest.mark.parametrize("option", ["-q", "--quiet", "--no-color"])
def test_options_without_a_value_stand_at_every_position(run, names, option):
    for position in range(len(names) + 1):
        shown = run(*names[:position], option, *names[position:], "--help")
        assert (shown.exit_code, shown.stderr) == (0, "")


def test_the_commands_are_the_documented_ones():
    assert {" ".join(names) for names in COMMANDS} == {
        "serve", "migrate", "backup", "restore", "fence", "copy", "doctor",
        "validate", "prove", "test", "sim", "schema", "lsp",
        "start", "watch", "apply", "status",
        "flows list", "flows get", "flows describe", "flows diff", "flows set", "flows delete",
        "tasks list", "tasks succeed", "tasks fail",
        "context list", "context set", "context use", "context delete", "invocations list",
        "executions list", "executions describe", "executions history", "executions stop", "executions restart",
        "executions redrive", "executions record", "test record",
        "versions list", "versions get", "versions diff", "versions publish", "versions delete",
        "aliases list", "aliases create", "aliases update", "aliases delete",
        "schedules list", "schedules get", "schedules create", "schedules update",
        "schedules pause", "schedules resume", "schedules trigger", "schedules backfill", "schedules delete",
        "audit list", "queues list", "queues peek", "queues send", "queues purge", "topics list", "topics publish",
        "invocations restart", "invocations stop",
        "secrets rekey", "keys rotate-tokens", "keys create", "keys list", "keys disable", "keys open",
        "secrets set", "secrets list", "secrets delete", "secrets new-key",
        "functions list", "functions put", "functions get", "functions delete", "functions serve",
    }  # fmt: skip


@pytest.mark.parametrize("names", COMMANDS, ids=" ".join)
def test_every_command_has_help_with_an_example(run, names):
    result = run(*names, "-h")
    assert result.exit_code == 0
    assert f"  flowserver {' '.join(names)}" in result.stdout.partition("Example")[2]


@pytest.mark.parametrize(
    "names",
    [
        (),
        ("keys",),
        ("functions",),
        ("executions",),
        ("flows",),
        ("tasks",),
        ("queues",),
        ("topics",),
        ("context",),
        ("schedules",),
        ("versions",),
        ("aliases",),
        ("secrets",),
    ],
    ids=" ".join,
)
def test_overviews_describe_every_command_in_a_full_sentence(run, names):
    result = run(*names, "--help")
    assert result.exit_code == 0
    listing = result.stdout.partition("Commands:\n")[2].splitlines()
    assert all(line.endswith(".") and not line.endswith("...") for line in listing)


@pytest.mark.parametrize("arguments", [["srve"], ["serve", "--prot", "1"], ["validate"], ["keys", "disable"]])
def test_wrong_usage_is_exit_code_2(run, arguments):
    result = run(*arguments)
    assert result.exit_code == 2
    assert result.stderr.startswith("Usage: ")


def test_the_overview_says_of_each_command_what_its_help_says():
    told = {name: command.get_short_help_str(200) for name, command in get_command(app).commands.items()}
    assert told == {name: entry.summary for name, entry in ENTRIES.items()}


NEVER = {"aiohttp", "alembic", "asyncio", "fastapi", "importlib.metadata", "pydantic", "rich", "sqlalchemy", "yaml"}
"""Modules that no plain talk with a server needs: some take longer to load than the whole command."""
REQUESTS = {"httpx", "httpcore", "h11", "certifi", "logging", "ssl"}
LANGUAGE = {"msgspec", "flowserver.client", "flowserver.cli.remote", "flowserver.cli.failures"}


@pytest.mark.parametrize(
    ("words", "exit_code", "unloaded"),
    [
        ("start order --name x --wait --timeout 5s", 4, NEVER),
        ("executions list --limit 3 --status running -o json", 4, NEVER),
        ("flows list -o json --ca-file none.pem", 4, NEVER),
        ("executions start", 2, NEVER | REQUESTS),
        ("executions --help", 0, NEVER | REQUESTS),
        ("start --help", 0, NEVER | REQUESTS),
        ("--help", 0, NEVER | REQUESTS | LANGUAGE),
        ("_FLOWSERVER_COMPLETE=complete_bash COMP_CWORD=1 flowserver exec", 0, NEVER | REQUESTS | LANGUAGE),
    ],
)
def test_a_command_loads_only_what_it_needs(words, exit_code, unloaded):
    """The import of modules is most of the time of a command."""
    program = "import sys, atexit; atexit.register(lambda: print('LOADED', *filter(sys.modules.get, sys.modules)))"
    program += "; from flowserver.cli.program import main; main()"
    variables, _, typed = words.rpartition("flowserver ")
    environment = dict(each.split("=") for each in variables.split())
    if environment:
        environment["COMP_WORDS"] = f"flowserver {typed}"
    done = subprocess.run(
        [sys.executable, "-c", program, *([] if environment else typed.split())],
        env={**clean_environment(), "FLOWSERVER_URL": "http://127.0.0.1:1", **environment},
        capture_output=True,
        text=True,
    )
    assert done.returncode == exit_code, done.stderr
    assert set(done.stdout.partition("LOADED ")[2].split()) & unloaded == set()


def _words_of(parameter):
    """The values of a parameter that are fixed words, as its type or its help lists them."""
    kind = parameter.type_descriptor
    if kind.is_choice:
        return [str(each) for each in kind.choices]
    words = (parameter.metavar or "").strip("[]").split("|")
    return [each for each in words if len(words) > 1 and each.isalpha() and each.islower()]


def _fixed_words():
    for command in (get_command(app), *map(_loaded, COMMANDS)):
        for parameter in command.params:
            yield from ((command, parameter, word) for word in _words_of(parameter))


def _loaded(names):
    command = get_command(app)
    for name in names:
        command = command.commands[name]
    return command


def test_every_fixed_word_of_an_option_is_completed():
    words = list(_fixed_words())
    assert {"failed", "running", "current", "yaml", "BufferAll", "TaskFailed", "warning"} <= {each[2] for each in words}
    for command, parameter, word in words:
        found = parameter.shell_complete(Context(command), word[:1])
        assert word in [each.value for each in found], (command.name, parameter.opts)
