"""Raw texts: encodings, line ends, JSON, unusual characters, and the YAML library's fallback."""

import json

import pytest
import yaml

from flowserver.language import source
from flowserver.language.graph import FailStep
from tests.language.definitions import HEADER, diagnostics_of, flow_of, ids_of

STEP = "- {type: pass, name: a}\n"
FLOW = HEADER + STEP


def cause_of(text: str) -> str:
    step = flow_of(text).root.steps[0]
    assert isinstance(step, FailStep)
    return step.cause


@pytest.mark.parametrize(
    "text",
    [
        FLOW,
        "\ufeff" + FLOW,
        FLOW.replace("\n", "\r\n"),
        FLOW.replace("\n", "\r"),
        FLOW.replace("\n", "\u2028"),
        FLOW.rstrip(),
        "---\n" + FLOW + "...\n",
        "%YAML 1.2\n---\n" + FLOW,
        '{"version":"v1","type":"flow","steps":[{"type":"pass","name":"a"}]}',
        '\t{\n\t"version": "v1", "type": "flow",\n\t"steps": [\n\t\t{"type": "pass", "name": "a"}\n\t]\n}'.lstrip(),
        json.dumps({"version": "v1", "type": "flow", "steps": [{"type": "pass", "name": "a"}]}, indent=4),
    ],
)
def test_texts_that_load(text: str) -> None:
    assert flow_of(text).root.position == {"a": 0}


@pytest.mark.parametrize("ensure_ascii", [True, False])
@pytest.mark.parametrize("cause", ["é 中 \N{GRINNING FACE}", '\\ud83d\\ude00 "quoted" \\', "a/b\tc\nd", "\u2028"])
def test_json_texts_keep_every_character(cause: str, ensure_ascii: bool) -> None:
    flow = {"version": "v1", "type": "flow", "steps": [{"type": "fail", "name": "a", "cause": cause}]}
    assert cause_of(json.dumps(flow, ensure_ascii=ensure_ascii)) == cause


def test_surrogate_pairs_are_joined_in_json_only() -> None:
    assert ids_of(HEADER + '- {type: fail, name: a, cause: "\\ud83d\\ude00"}\n') == ["not-yaml"]


@pytest.mark.parametrize("character", ["\x00", "\x1b", "\x7f", "\ud800", "\ufffe"])
def test_refused_characters(character: str) -> None:
    (found,) = diagnostics_of(f"{HEADER}# é{character}\n{STEP}")
    assert (found.id, found.span.line, found.span.column) == ("bad-character", 4, 4)
    assert f"U+{ord(character):04X}" in found.message


@pytest.mark.parametrize(
    ("text", "line", "column", "hint"),
    [
        ("a: b\n\n\tc: d\n", 3, 1, "YAML indents with blanks, not with tabs"),
        ("\t", 1, 1, "YAML indents with blanks, not with tabs"),
        ("a: `b`\n", 1, 4, "write this text in quotes: `'`b`'`"),
        ("a: b: c\n", 1, 5, "write this text in quotes: `'b: c'`"),
        ("a: [b\n\n\n", 1, 6, "`[` in line 1, column 4 is not closed: add `]`"),
        ("a: [b", 1, 6, "`[` in line 1, column 4 is not closed: add `]`"),
        ("{a: [}", 1, 6, "`[` in line 1, column 5 is not closed: add `]`"),
        ("a: b\nc\nd: e\n", 3, 1, None),
        (f"a: b: {'c' * 1_000}\n", 1, 5, None),
    ],
)
def test_syntax_errors_have_a_position_and_advice(text: str, line: int, column: int, hint: str | None) -> None:
    (found,) = diagnostics_of(text)
    assert (found.id, found.span.line, found.span.column, found.hint) == ("not-yaml", line, column, hint)
    assert found.message.startswith("this is not YAML: ")


@pytest.mark.parametrize("text", ["", " \n", "\ufeff", "# nothing\n"])
def test_empty_texts(text: str) -> None:
    assert ids_of(text) == ["no-definition"]


@pytest.mark.parametrize("text", ["---\n", "null", "text", "5", "[]", "- a\n- b\n", "!x a"])
def test_documents_that_are_not_mappings(text: str) -> None:
    assert ids_of(text)[-1] == "wrong-type"


def test_the_python_parser_of_yaml_works_too(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is used if the C parser was not built; it accepts halves of surrogate pairs."""
    monkeypatch.setattr(source, "_LOADER", yaml.SafeLoader)
    assert cause_of(HEADER + "- {type: fail, name: a, cause: ok}\n") == "ok"
    assert ids_of(HEADER + '- {type: fail, name: a, cause: "\\ud800"}\n') == ["bad-character"]
    assert ids_of("a: [") == ["not-yaml"]
