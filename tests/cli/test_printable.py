"""What functions and flows say reaches a terminal without its control characters."""

import json

import pytest

from flowserver.cli.printable import json_text, printable
from flowserver.cli.remote.output import one_line
from flowserver.cli.tables import aligned

HOSTILE = "\x1b]0;owned\x07\x1b[2J\r\x9b2J\u202egpj\x85\u2028\u2029"
SHOWN = "\\x1b]0;owned\\x07\\x1b[2J\\x0d\\x9b2J\\u202egpj\\x85\\u2028\\u2029"


def test_control_characters_are_shown_as_escapes() -> None:
    assert printable(f"a\tb\n{HOSTILE} 中é") == f"a\tb\n{SHOWN} 中é"
    assert aligned([["A", "B"], [HOSTILE, "x"]]) == f"{'A':<{len(SHOWN)}}  B\n{SHOWN}  x"
    assert "\x1b" not in one_line(HOSTILE, 20)


@pytest.mark.parametrize("indent", [None, 2])
def test_json_keeps_its_value(indent: int | None) -> None:
    document = {"cause": f"{HOSTILE}\n中", "\x9b": ["\x7f"]}
    text = json_text(document, indent)
    assert json.loads(text) == document
    assert "中" in text
    assert not set(text) & set(HOSTILE[:1] + "\x07\r\x9b\x7f\u202e\u2028")


def test_an_operator_who_looks_at_a_hostile_execution_is_safe(run, server, tmp_path, monkeypatch):
    monkeypatch.setenv("FLOWSERVER_URL", server.url)
    cause = json.dumps(HOSTILE)
    (tmp_path / "hostile.yaml").write_text(
        f"version: v1\ntype: flow\nsteps:\n- {{type: fail, name: no, error: Bad, cause: {cause}}}\n"
    )
    assert run("apply", tmp_path / "hostile.yaml").exit_code == 0
    failed = run("start", "hostile", "--name", "e", "--wait")
    seen = [failed.stdout, failed.stderr]
    for command in ("describe hostile/e", "list --flow hostile", "history hostile/e", "list --flow hostile -o json"):
        result = run("executions", *command.split())
        assert result.exit_code == 0
        seen += [result.stdout, result.stderr]
    assert any(SHOWN in text for text in seen)
    assert not any(set(text) & {"\x1b", "\x07", "\r", "\x9b", "\u202e"} for text in seen)
