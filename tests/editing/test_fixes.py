"""Changes that are offered for findings: after each of them the finding is gone."""

import json

import pytest

from flowserver.analysis.rules import RULES
from flowserver.editing.files import Definition
from flowserver.editing.findings import marks_of_definition
from flowserver.editing.fixes import Fix, fixes_of
from tests.editing.conftest import LIMITS, ORDER

HEAD = "version: v1\ntype: flow\nsteps:\n"


def found(text: str) -> list[str]:
    return [mark.found.id for mark in marks_of_definition(Definition(text, LIMITS))]


def offered(text: str, id: str) -> list[Fix]:
    file = Definition(text, LIMITS)
    mark = next(mark for mark in marks_of_definition(file) if mark.found.id == id)
    return [*fixes_of(mark, file.text)]


def changed(text: str, fix: Fix) -> str:
    return text[: fix.edit.extent.start] + fix.edit.text + text[fix.edit.extent.end :]


MEANT = {
    "unknown-attribute": (HEAD + "  - {type: pass, name: p, outputMapings: []}\n", "outputMapings", "outputMappings"),
    "unknown-step-type": (HEAD + "  - {type: tsak, name: p}\n", "tsak", "task"),
    "unknown-goto": (ORDER.replace("goto: mail}", "goto: 'mial'}"), "'mial'", "'mail'"),
    "misspelt-root": (ORDER.replace("$local.receipt", "$loacl.receipt"), "$loacl", "$local"),
    "bad-condition": (ORDER.replace("==", "="), "=", "=="),
    "unknown-parameter": (ORDER.replace("MessageBody", "MesageBody"), "MesageBody", "MessageBody"),
    "bad-value": (ORDER.replace("    name: mail\n", "    name: mail\n    pattern: waitforcallback\n"), "", ""),
    "doubtful-error-name": (ORDER.replace("CardDeclined", "FC.Unknwon"), "FC.Unknwon", "FC.Unknown"),
}

PARSED = MEANT.keys() - RULES
"""Errors of the parser: without them the rules look at the definition, and find more."""


@pytest.mark.parametrize("id", MEANT)
def test_what_was_probably_meant(id):
    text, old, new = MEANT[id]
    fix = offered(text, id)[0]
    assert fix.is_preferred
    if old:
        assert fix.title == f"Change to `{new.strip(chr(39))}`"
    left = found(changed(text, fix))
    assert id not in left
    assert len(left) < len(found(text)) or id in PARSED, "the change is no new mistake"


@pytest.mark.parametrize(
    ("attribute", "title"),
    [
        ("cause: 5", "Write it in quotes"),
        ("cause: true", "Write it in quotes"),
        ("end: 'yes'", "Write it without quotes"),
        ("timeoutSeconds: '30'", "Write it without quotes"),
    ],
)
def test_quotes(attribute, title):
    kind = "fail" if attribute.startswith("cause") else "task"
    rest = "" if kind == "fail" else ", resourceArn: 'acs:fc:::functions/f'"
    text = f"{HEAD}  - {{type: {kind}, name: p{rest}, {attribute}}}\n"
    (fix,) = offered(text, "wrong-type")
    assert fix.title == title
    assert "wrong-type" not in found(changed(text, fix))


def test_json_stays_json():
    steps = [{"type": "fail", "name": "f", "cause": True}]
    text = json.dumps({"version": "v1", "type": "flow", "steps": steps})
    (fix,) = offered(text, "wrong-type")
    assert json.loads(changed(text, fix))["steps"][0]["cause"] == "true"


@pytest.mark.parametrize("id", ["missing-on-path", "duplicate-name-elsewhere"])
def test_a_comment_suppresses_a_finding(id):
    (fix,) = offered(ORDER, id)
    assert fix.title == f"Ignore `{id}` here"
    assert not fix.is_preferred
    after = found(changed(ORDER, fix))
    assert after.count(id) == found(ORDER).count(id) - 1
    assert "unused-ignore" not in after


def test_a_comment_that_is_not_used_is_removed():
    for text in (
        HEAD + "  # flowserver: ignore endless-loop why\n  - {type: pass, name: p}\n",
        HEAD + "  - {type: pass, name: p}  # flowserver: ignore endless-loop why\n",
        HEAD + "  - {type: pass, name: p}\n# flowserver: ignore endless-loop why",
    ):
        (fix,) = offered(text, "unused-ignore")
        assert changed(text, fix) in (HEAD + "  - {type: pass, name: p}\n", HEAD + "  - {type: pass, name: p}")


def test_errors_of_the_parser_and_json_get_no_comment():
    assert offered(HEAD + "  - {type: pass, nmae: 7}\n", "missing-attribute") == []
    choice = '{"type": "choice", "name": "c", "choices": [{"condition": "$.a"}]}'
    text = f'{{"version": "v1", "type": "flow", "steps": [{choice}]}}'
    assert offered(text, "choice-without-default") == []
