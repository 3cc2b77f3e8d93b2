"""The process of the language server: how it begins and ends, and what it survives."""

import sys

from flowserver.cli.exit_codes import ExitCode
from tests.lsp.editor import Editor
from tests.lsp.test_findings import VALID, WRONG
from tests.support.server import PATIENCE_SECONDS


def test_it_ends_as_the_protocol_says(tmp_path):
    with Editor(tmp_path) as editor:
        editor.initialize()
        editor.open("a.yaml", VALID)
        assert editor.end() == ExitCode.DONE
        assert editor.stderr() == ""


def test_a_refused_name_is_no_fault(tmp_path):
    with Editor(tmp_path) as editor:
        editor.initialize()
        editor.open("a.yaml", VALID)
        line = next(number for number, text in enumerate(VALID.splitlines()) if "name: " in text)
        at = VALID.splitlines()[line].index("name: ") + len("name: ")
        error = editor.reply("textDocument/rename", {**editor.at("a.yaml", line, at), "newName": "a b"})["error"]
        assert "is not a step name" in error["message"]
        assert editor.end() == ExitCode.DONE
        assert editor.stderr() == ""


def test_it_ends_when_the_editor_says_exit_without_a_word_before(tmp_path):
    with Editor(tmp_path) as editor:
        editor.initialize()
        editor.notify("exit", None)
        assert editor.process.wait(PATIENCE_SECONDS) == ExitCode.FAILED


def test_it_ends_when_the_editor_dies(tmp_path):
    with Editor(tmp_path) as editor:
        editor.initialize()
        editor.open("a.yaml", VALID)
        assert editor.process.stdin is not None
        editor.process.stdin.close()
        assert editor.process.wait(PATIENCE_SECONDS) == ExitCode.FAILED


def test_it_survives_messages_that_are_none(tmp_path):
    with Editor(tmp_path) as editor:
        editor.initialize()
        for body in (b"{", b"\xff\xfe", b"[]", b"7", b'{"jsonrpc": "2.0", "method": 7}', b"[" * 100_000):
            editor.send_bytes(body)
        assert editor.reply("no/such/method", {})["error"]["code"] == -32601
        editor.notify("textDocument/didOpen", {"nonsense": 1})
        assert editor.open("a.yaml", VALID) == []
        assert editor.end() == ExitCode.DONE


def test_a_request_before_the_handshake(tmp_path):
    with Editor(tmp_path) as editor:
        assert editor.reply("textDocument/hover", editor.at("a.yaml", 0, 0))["id"] == 1
        editor.notify(
            "textDocument/didChange", {"textDocument": {"uri": "file:///a", "version": 1}, "contentChanges": []}
        )
        editor.initialize()
        assert editor.open("a.yaml", VALID) == []
        assert editor.end() == ExitCode.DONE


FAILS_AT_A_WORD = """
import sys
from flowserver.cli.program import main
from flowserver.editing.files import Definition

learn = Definition.learn

def fails(definition):
    if "dynamite" in definition.text.text:
        raise ZeroDivisionError("a mistake of ours")
    learn(definition)

Definition.learn = fails
sys.argv[1:] = ["lsp"]
main()
"""


def test_a_check_that_fails_takes_the_place_of_old_findings_and_is_logged(tmp_path):
    with Editor(tmp_path, command=(sys.executable, "-c", FAILS_AT_A_WORD)) as editor:
        editor.initialize()
        assert len(editor.open("a.yaml", WRONG)) == 2
        editor.change("a.yaml", WRONG + "# dynamite\n")
        (failure,) = editor.findings("a.yaml")
        assert (failure["code"], failure["severity"]) == ("check-failed", 1)
        assert "ZeroDivisionError" in failure["message"]
        editor.change("a.yaml", VALID)
        assert editor.findings("a.yaml") == []
        assert editor.end() == ExitCode.DONE
        log = editor.stderr()
        assert log.count("ZeroDivisionError: a mistake of ours") == 1
        assert "a.yaml" in log
