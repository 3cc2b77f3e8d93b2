"""`flowserver lsp` as an editor sees it: what it publishes about the texts that it gets."""

import os
from collections.abc import Iterator
from typing import Any

import pytest

from flowserver.base.limits import Limits
from tests.lsp.editor import Editor

VALID = "version: v1\ntype: flow\nsteps:\n  - {type: pass, name: p}\n"
WRONG = "version: v1\ntype: flow\nsteps:\n  - type: pass\n    nmae: p\n"
WAYS = """\
version: v1
type: flow
steps:
  - type: task
    name: charge
    resourceArn: acs:fc:::services/shop/functions/charge
    outputMappings: [{target: receipt, source: $local.id}]
    errorMappings: [{target: why, source: $local.error}]
    catch: [{errors: [CardDeclined], goto: mail}]
  - type: task
    name: mail
    resourceArn: acs:fc:::services/shop/functions/mail
    inputMappings: [{target: receipt, source: $local.receipt}]
"""


@pytest.fixture(scope="module")
def started(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Editor]:
    with Editor(tmp_path_factory.mktemp("flows")) as editor:
        editor.initialize()
        yield editor


@pytest.fixture
def editor(started: Editor) -> Iterator[Editor]:
    """An editor without open files."""
    yield started
    started.close_all()


def shown(found: dict[str, Any]) -> tuple[str, int, tuple[int, int], tuple[int, int]]:
    start, end = found["range"]["start"], found["range"]["end"]
    return found["code"], found["severity"], (start["line"], start["character"]), (end["line"], end["character"])


def test_findings_come_and_go(editor):
    assert editor.open("a.yaml", VALID) == []
    editor.change("a.yaml", WRONG)
    found = editor.findings("a.yaml")
    assert [shown(each) for each in found] == [
        ("missing-attribute", 1, (3, 4), (3, 8)),
        ("unknown-attribute", 1, (4, 4), (4, 8)),
    ]
    assert found[1]["message"] == "`nmae` is not an attribute of a pass step\ndid you mean `name`?"
    assert found[1]["source"] == "flowserver"
    editor.change("a.yaml", VALID)
    assert editor.findings("a.yaml") == []


def test_findings_of_rules_have_their_page_and_the_way_that_shows_them(editor):
    (found,) = [each for each in editor.open("a.yaml", WAYS) if each["code"] == "missing-on-path"]
    assert found["severity"] == 2
    assert found["codeDescription"]["href"].endswith("docs/reference/rules.md#missing-on-path")
    assert [each["message"] for each in found["relatedInformation"]] == [
        "charge fails with CardDeclined, which is caught",
        "mail reads `receipt`, which no step on this way puts out",
    ]
    place = found["relatedInformation"][0]["location"]
    assert place == {
        "uri": editor.uri("a.yaml"),
        "range": {"start": {"line": 4, "character": 10}, "end": {"line": 4, "character": 16}},
    }


def test_columns_are_in_units_of_utf_16(editor):
    text = VALID.replace("name: p", "name: p, outputMappings: [{target: '\N{PILE OF POO}', source: $inptu.a}]")
    ((code, _, start, end),) = [shown(each) for each in editor.open("a.yaml", text)]
    line = text.splitlines()[3]
    column = line.index("$inptu") + 1
    assert (code, start, end) == ("misspelt-root", (3, column), (3, column + len("$inptu.a")))


@pytest.mark.parametrize(("encoding", "more"), [("utf-8", 3), ("utf-32", 0)])
def test_columns_are_in_the_units_that_the_editor_prefers(tmp_path, encoding, more):
    text = VALID.replace("name: p", "name: p, outputMappings: [{target: '\N{PILE OF POO}', source: $inptu.a}]")
    with Editor(tmp_path, encodings=[encoding, "utf-16"]) as editor:
        assert editor.initialize()["capabilities"]["positionEncoding"] == encoding
        ((_, _, start, _),) = [shown(each) for each in editor.open("a.yaml", text)]
        assert start == (3, text.splitlines()[3].index("$inptu") + more)


def test_a_flow_test_is_checked_with_the_definition_that_is_open(editor):
    (editor.folder / "a.yaml").write_text(VALID)
    test = "flow: a.yaml\ntests: [{name: one, expect: {path: [q]}}]\n"
    (found,) = editor.open("a.flowtest.yaml", test)
    assert (found["code"], found["range"]["start"]) == ("unknown-step", {"line": 1, "character": 36})
    editor.open("a.yaml", VALID.replace("name: p", "name: q"))
    assert editor.findings("a.flowtest.yaml") == []
    (missing,) = editor.open("b.flowtest.yaml", test.replace("a.yaml", "b.yaml"))
    assert missing["code"] == "unusable-flow"


def test_a_file_that_a_flow_test_cannot_use_is_reported_without_reading_all_of_it(editor):
    bytes_max = Limits().definition_bytes_max
    with (editor.folder / "large.yaml").open("wb") as large:
        large.truncate(1 << 40)  # a hole: it takes no space, and far more memory than there is
    os.mkfifo(editor.folder / "pipe.yaml")
    test = "flow: NAME\ntests: [{name: one}]\n"
    for name, reason in {
        "large.yaml": f"this file has more than {bytes_max} bytes",
        "pipe.yaml": "this is no regular file",
        r'"a\0.yaml"': "cannot be the name of a file",
    }.items():
        (found,) = editor.open("a.flowtest.yaml", test.replace("NAME", name))
        assert found["code"] == "unusable-flow"
        assert reason in found["message"]
        assert editor.open("b.yaml", VALID) == []
        editor.close_all()


OTHERS = {
    "compose.yaml": "services: {web: {}}\n",
    "pipeline.yaml": "steps:\n  - script: make\n",
    "chart.yaml": "version: v1.2.0\ntype: application\n",
    "resource.yaml": "apiVersion: v1\nkind: Pod\nspec: {type: flow}\n",
    "machine.yaml": "Type: StateMachine\nSpecVersion: v1\n",
    "empty.yaml": "",
}


def test_other_yaml_is_left_alone(editor):
    for name, text in OTHERS.items():
        document = {"uri": editor.uri(name), "languageId": "yaml", "version": 1, "text": text}
        editor.notify("textDocument/didOpen", {"textDocument": document})
    assert editor.open("a.yaml", VALID) == []
    assert editor.kept == []


def test_findings_go_when_a_file_is_closed(editor):
    editor.open("a.yaml", WRONG)
    assert editor.close("a.yaml") == {"uri": editor.uri("a.yaml"), "diagnostics": []}


HOSTILE = {
    "too large": "version: v1\n#" + "x" * Limits().definition_bytes_max,
    "a bomb": "version: v1\na: &a [x, x]\n"
    + "".join(f"b{n}: &b{n} [*{f'b{n - 1}' if n else 'a'}, *a]\n" for n in range(60)),
    "deep": "version: v1\na: " + "[" * 100_000,
    "one line": '{"type": "flow", "version": "v1", "steps": [' + ",".join(['{"type": "pass"}'] * 9_000) + "]}",
    "control characters": "version: v1\n\0\x1b[2J",
    "half a pair": "version: v1\na: \ud800",
    "nothing but breaks": "version: v1" + "\r\u2028\x85\n" * 20_000,
}


@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE)
def test_hostile_texts_are_answered(editor, text):
    found = editor.open("a.yaml", text)
    assert 1 <= len(found) <= 101
    assert editor.open("b.yaml", VALID) == []
