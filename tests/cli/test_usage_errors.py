"""What a command says that is written wrongly: the form that was probably meant, or an example."""

import re
import shlex
from pathlib import Path

import pytest

from flowserver.cli.command_suggestions import _ELSEWHERE, _OF_NOUNS, _OTHER_WORDS, _VERBS
from flowserver.cli.main import COMMANDS, Commands
from flowserver.cli.usage_errors import _OPTIONS, _OTHER_OPTIONS

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("executions list hello", "executions list --flow hello"),
        ("executions list failed", "executions list --status failed"),
        ("executions list --failed --since 1d", "executions list --status failed --since 1d"),
        ("executions redrive --failed --since 1d", "executions redrive --status failed --since 1d"),
        ("apply -f flows/", "apply flows/"),
        ("apply --filename=flows/ --dry-run", "apply flows/ --dry-run"),
        ("start order --data '{}'", "start order --input '{}'"),
        ("start order --version 3", "start order --qualifier 3"),
        ("start order:prod", "start order --qualifier prod"),
        ("start order@prod", "start order --qualifier prod"),
        ("executions list --status failed hello -o json", "executions list --status failed -o json --flow hello"),
        ("schedules list order", "schedules list --flow order"),
        ("queues list work", "queues list --prefix work"),
        ("schedules create order nightly", "schedules create order/nightly"),
        ("schedules create order nightly 5m", "schedules create order/nightly --every 5m"),
        ("schedules create order/x '0 30 2 * * ?'", "schedules create order/x --cron '0 30 2 * * ?'"),
        ("schedules pause order nightly moving", "schedules pause order/nightly --note moving"),
        ("executions history order bad-1", "executions history order/bad-1"),
        ("executions describe order bad-1", "executions describe order/bad-1"),
        ("executions redrive order bad-1", "executions redrive order/bad-1"),
        ("executions stop order bad-1", "executions stop order/bad-1"),
        ("watch order bad-1", "watch order/bad-1"),
        ("functions put shop charge http://h", "functions put shop/charge http://h"),
        ("tasks succeed TOKEN '{\"a\": 1}'", "tasks succeed TOKEN --output '{\"a\": 1}'"),
        ("tasks fail TOKEN Rejected 'too much'", "tasks fail TOKEN --error Rejected --cause 'too much'"),
        ("aliases create order prod 3", "aliases create order prod --route 3"),
        ("versions publish order 'the postcode'", "versions publish order --description 'the postcode'"),
        ("start order '{\"a\": 1}' mine", "start order --input '{\"a\": 1}' --name mine"),
    ],
)
def test_words_in_the_wrong_place(run, written, meant):
    refused = run(*shlex.split(written))
    assert (refused.exit_code, refused.stdout) == (2, "")
    assert refused.stderr.endswith(f": flowserver {meant}\n")


@pytest.mark.parametrize(
    ("written", "usage", "said"),
    [
        ("start order --name", "start", "Option '--name' requires an argument."),
        ("start order --wait=yes", "start", "Option '--wait' does not take a value."),
        ("executions list --limit", "executions list", "Option '--limit' requires an argument."),
        ("prove --explain", "prove", "Option '--explain' requires an argument."),
        ("serve --port", "serve", "Option '--port' requires an argument."),
        ("--server", "", "Option '--server' requires an argument."),
    ],
)
def test_an_option_without_its_value(run, written, usage, said):
    refused = run(*shlex.split(written))
    assert (refused.exit_code, refused.stdout) == (2, "")
    assert refused.stderr.startswith(f"Usage: flowserver {usage}")
    assert refused.stderr.endswith(f"Error: {said}\n")


@pytest.mark.parametrize(
    ("written", "said"),
    [
        ("executions describe", "Missing argument 'EXECUTION'. Example: flowserver executions describe order/8f0c2a"),
        ("tasks fail TOKEN", "Missing option '--error'. Example: flowserver tasks fail "),
        ("executions list --flow a b", "extra argument(s) (b). Example: flowserver executions list "),
        ("status now", "extra argument(s) (now). Example: flowserver status"),
        ("watch order", "not 'order'; those of a flow: flowserver executions list --flow order"),
        ("schedules get order", "not 'order'; those of a flow: flowserver schedules list --flow order"),
        ("schedules create a/b", "give --cron or --every: flowserver schedules create a/b --every 1h"),
    ],
)
def test_an_example_where_no_form_is_known(run, written, said):
    refused = run(*written.split())
    assert (refused.exit_code, refused.stdout) == (2, "")
    assert said in refused.stderr


@pytest.mark.parametrize(
    ("written", "said"),
    [
        ("executions redrive --status wait", "'--status': 'wait' is not one of failed, stopped, timedout"),
        ("executions list --status faild", "'faild' is not one of running, succeeded, failed, stopped, timedout; "),
        ("executions list --status faild", "timedout; did you mean failed?"),
        (
            "executions list -o jsn",
            "'-o' / '--format': 'jsn' is not one of table, json, yaml, name; did you mean json?",
        ),
        (
            "-o jsn executions list",
            "'-o' / '--format': 'jsn' is not one of table, json, yaml, name; did you mean json?",
        ),
        ("executions -o jsn list", "'jsn' is not one of table, json, yaml, name; did you mean json?"),
        ("executions history a/b --type StepFaild", "'--type': 'StepFaild' is unknown; did you mean StepFailed?"),
        ("executions history a/b --type x", "'x' is not one of ExecutionStarted, ExecutionSucceeded, "),
        ("schedules trigger a/b --overlap wait", "'wait' is not one of Skip, BufferOne, BufferAll, CancelOther, "),
        ("flows set x --on-retries-exhausted wait", "'wait' is not one of fail, wait-for-redrive"),
        ("executions list --limit x", "'--limit': must be a whole number from 1 to 100000"),
        ("executions history a/b --limit x", "'--limit': must be a whole number of 1 or more"),
        ("queues peek work --limit 17", "'--limit': must be a whole number from 1 to 16"),
        ("functions put a/b http://h --hook-seconds x", "'--hook-seconds': must be a whole number"),
    ],
)
def test_a_value_that_is_refused(run, written, said):
    refused = run(*written.split())
    assert (refused.exit_code, refused.stdout) == (2, "")
    assert said in refused.stderr
    assert "Value error" not in refused.stderr


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("executions retry x", "'redrive'"),
        ("executions get x", "'describe'"),
        ("executions cancel x", "'stop'"),
        ("executions terminate x", "'stop'"),
        ("executions kill x", "'stop'"),
        ("executions rm x", "'stop'"),
        ("executions logs x", "'history'"),
        ("executions tail x", "'flowserver watch'"),
        ("executions run x", "'flowserver start'"),
        ("executions histroy x", "'history'"),
        ("flows ls", "'list'"),
        ("flows show x", "'describe', 'get'"),
        ("flows create x", "'flowserver apply'"),
        ("flows rm x", "'delete'"),
        ("flows run x", "'flowserver start'"),
        ("schedules run x", "'trigger'"),
        ("schedules rm x", "'delete'"),
        ("tasks complete x", "'succeed'"),
        ("aliases set x", "'create', 'update'"),
        ("start-execution x", "'start'"),
        ("ls", "'executions list', 'flows list'"),
        ("kill x", "'executions stop'"),
        ("workflow list", "'executions', 'flows'"),
        ("create x", "'apply', 'aliases create', 'schedules create', 'keys create'"),
    ],
)
def test_words_of_other_programs(run, written, meant):
    refused = run(*written.split())
    assert (refused.exit_code, refused.stdout) == (2, "")
    word = written.split()[written.split()[0] in COMMANDS]
    assert refused.stderr.endswith(f"No such command '{word}'. Did you mean {meant}?\n")


@pytest.mark.parametrize("words", _ELSEWHERE)
def test_what_is_done_without_a_command(run, words):
    refused = run(*words.split())
    assert (refused.exit_code, refused.stdout) == (2, "")
    assert refused.stderr.endswith(f"No such command '{words.split()[-1]}'. {_ELSEWHERE[words]}\n")


def _paths():
    program = Commands(name="flowserver").commands
    for name in COMMANDS:
        yield name
        yield from (f"{name} {verb}" for verb in getattr(program[name], "commands", ()))


def test_what_is_suggested_exists():
    paths = set(_paths())
    verbs = {path.rpartition(" ")[2] for path in paths}
    assert set(_OPTIONS) <= paths
    assert not set(_ELSEWHERE) & paths
    for said in _ELSEWHERE.values():
        assert {*re.findall(r"flowserver ([a-z]+(?: [a-z]+)?)", said)} <= paths
        assert all((ROOT / page).is_file() for page in re.findall(r"docs/[a-z/-]+\.md", said))
    program = Commands(name="flowserver").commands
    for path, meant in _OTHER_OPTIONS.items():
        noun, _, verb = path.partition(" ")
        command = program[noun].commands[verb] if verb else program[noun]
        options = {option for each in command.params for option in each.opts}
        assert {word for words in meant.values() for word in words if word.startswith("-")} <= options
        assert not set(meant) & options
    assert {each for meant in _OTHER_WORDS.values() for each in meant if not each.startswith("--")} <= paths
    assert {each for meant in _VERBS.values() for each in meant} <= verbs
    for noun, words in _OF_NOUNS.items():
        for each in (each for meant in words.values() for each in meant):
            assert each.removeprefix("flowserver ") in paths or f"{noun} {each}" in paths
        assert not {f"{noun} {word}" for word in words} & paths
