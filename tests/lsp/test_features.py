"""What `flowserver lsp` answers an editor, over stdin and stdout."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.editing.conftest import ORDER, TESTS
from tests.lsp.editor import Editor

ASTRAL = "\N{PILE OF POO}"
FLOW = ORDER.replace("target: why,", f"target: '{ASTRAL}',").replace("$.why", '$["' + ASTRAL + '"]')


@pytest.fixture(scope="module")
def editor(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Editor]:
    """An editor with a folder of two files, of which the flow test is not open."""
    folder: Path = tmp_path_factory.mktemp("flows")
    (folder / "order.flowtest.yaml").write_text(TESTS)
    (folder / "other.flowtest.yaml").write_text("flow: [")
    (folder / "order.yaml").write_text("nothing of what is open")
    with Editor(folder) as started:
        started.capabilities = started.initialize()["capabilities"]
        started.open("order.yaml", FLOW)
        yield started
        assert started.end() == 0


def place(text: str, at: str) -> tuple[int, int]:
    """Line and UTF-16 column of a word, from 0, one column inside it."""
    before = text[: text.index(at)]
    line = before.rpartition("\n")[2]
    return before.count("\n"), len(line.encode("utf-16-le")) // 2 + 1


def ask(editor: Editor, method: str, at: str, text: str = FLOW, name: str = "order.yaml", **more: Any) -> Any:
    return editor.request(f"textDocument/{method}", {**editor.at(name, *place(text, at)), **more})


def span(line: int, start: int, end: int) -> dict[str, Any]:
    return {"start": {"line": line, "character": start}, "end": {"line": line, "character": end}}


def test_it_says_what_it_offers(editor):
    offered = editor.capabilities
    assert offered["positionEncoding"] == "utf-16"
    assert offered["textDocumentSync"]["change"] == 1
    assert offered["renameProvider"] == {"prepareProvider": True}
    assert {"hoverProvider", "definitionProvider", "referencesProvider", "documentSymbolProvider"} <= offered.keys()
    assert {"completionProvider", "codeActionProvider", "documentHighlightProvider"} <= offered.keys()


def test_go_to_a_step(editor):
    found = ask(editor, "definition", "mail}")
    assert found == {"uri": editor.uri("order.yaml"), "range": span(23, 10, 14)}
    assert ask(editor, "definition", "receipt") is None


def test_references_are_in_flow_tests_too(editor):
    found = ask(editor, "references", "mail}", context={"includeDeclaration": True})
    places = [(each["uri"].rpartition("/")[2], each["range"]["start"]["line"]) for each in found]
    assert places == [
        ("order.yaml", 23),
        ("order.yaml", 9),
        ("order.yaml", 20),
        ("order.flowtest.yaml", 1),
        ("order.flowtest.yaml", 6),
    ]
    without = ask(editor, "references", "mail}", context={"includeDeclaration": False})
    assert without == found[1:]
    highlights = ask(editor, "documentHighlight", "mail}")
    assert [each["range"] for each in highlights] == [each["range"] for each in found[:3]]


def test_rename(editor):
    assert ask(editor, "prepareRename", "mail}") == {"range": span(9, 39, 43), "placeholder": "mail"}
    assert ask(editor, "prepareRename", "receipt") is None
    changes = ask(editor, "rename", "mail}", newName="send")["changes"]
    assert {uri.rpartition("/")[2]: len(edits) for uri, edits in changes.items()} == {
        "order.yaml": 3,
        "order.flowtest.yaml": 2,
    }
    assert changes[editor.uri("order.yaml")][1] == {"range": span(9, 39, 43), "newText": "send"}


def test_a_refused_name(editor):
    params = {**editor.at("order.yaml", *place(FLOW, "mail}")), "newName": "charge"}
    error = editor.reply("textDocument/rename", params)["error"]
    assert error["message"] == "`charge` is a step of this list already"


def test_hover(editor):
    found = ask(editor, "hover", "$local.receipt")
    line, start = place(FLOW, "$local.receipt")
    assert found["range"] == span(line, start - 1, start - 1 + len("$local.receipt"))
    assert found["contents"] == {
        "kind": "markdown",
        "value": "`$local.receipt` is there on some ways only: any value.",
    }


def test_columns_after_an_astral_character(editor):
    found = ask(editor, "hover", "$local.error")
    assert found["contents"]["value"] == "`$local.error` is always there: a text."
    start = found["range"]["start"]["character"]
    line = FLOW.splitlines()[found["range"]["start"]["line"]]
    assert start == line.index("$local.error") + 1


def test_completion(editor):
    found = ask(editor, "completion", "foreach")
    items = {each["label"]: each for each in found["items"]}
    assert list(items) == ["task", "wait", "pass", "choice", "parallel", "foreach", "succeed", "fail"]
    line, start = place(FLOW, "foreach")
    assert items["task"]["textEdit"] == {"range": span(line, start - 1, start - 1 + len("foreach")), "newText": "task"}
    assert items["task"]["detail"] == "a task step"


def test_completion_of_a_text_that_is_no_yaml(editor):
    text = FLOW.replace("  - type: foreach\n", "  - \n  - type: foreach\n")
    editor.open("typing.yaml", text)
    broken = text.replace("  - \n", "  - ty\n").replace("name: mail", "name: [mail")
    editor.change("typing.yaml", broken)
    found = ask(editor, "completion", "ty\n", broken, "typing.yaml")
    items = {each["label"]: each for each in found["items"]}
    assert items["task step"]["textEdit"]["newText"] == "type: task\n  name: $1\n  resourceArn: $2"
    assert items["task step"]["insertTextFormat"] == 2
    assert items["type"]["documentation"]["value"] == "The kind of step."


def test_a_new_flow_in_an_empty_file(editor):
    for name, text, is_offered in (("new.yaml", "", True), ("word.yaml", "fl", True), ("a.yaml", "a: b", False)):
        document = {"uri": editor.uri(name), "languageId": "yaml", "version": 1, "text": text}
        editor.notify("textDocument/didOpen", {"textDocument": document})
        items = editor.request("textDocument/completion", editor.at(name, 0, len(text)))["items"]
        assert ("new flow" in [each["label"] for each in items]) == is_offered


def test_when_an_error_comes_up(editor):
    text = FLOW.replace("CardDeclined", "FC.ResourceThrottled")
    editor.open("errors.yaml", text)
    found = ask(editor, "hover", "FC.Resource", text, "errors.yaml")
    assert found["contents"]["value"] == "Status 503 without a document: calls are throttled."
    items = {each["label"]: each for each in ask(editor, "completion", "FC.Resource", text, "errors.yaml")["items"]}
    assert items["FC.ResourceThrottled"]["documentation"]["value"].startswith("Status 503")


def test_symbols(editor):
    found = editor.request("textDocument/documentSymbol", {"textDocument": {"uri": editor.uri("order.yaml")}})
    assert [each["name"] for each in found] == ["charge", "pack", "check", "mail"]
    assert [each["name"] for each in found[1]["children"]] == ["label"]
    assert found[3]["selectionRange"] == span(23, 10, 14)


def test_code_actions(editor):
    wrong = FLOW.replace("goto: mail}", "goto: mial}")
    findings = editor.open("wrong.yaml", wrong)
    (finding,) = [each for each in findings if each["code"] == "unknown-goto"]
    params = {
        "textDocument": {"uri": editor.uri("wrong.yaml")},
        "range": finding["range"],
        "context": {"diagnostics": [finding]},
    }
    (fix,) = editor.request("textDocument/codeAction", params)
    assert (fix["title"], fix["kind"], fix["isPreferred"]) == ("Change to `mail`", "quickfix", True)
    assert fix["diagnostics"] == [finding]
    edits = fix["edit"]["changes"][editor.uri("wrong.yaml")]
    assert edits == [{"range": finding["range"], "newText": "mail"}]


def test_flow_tests_lead_to_the_flow(editor):
    editor.open("more.flowtest.yaml", TESTS)
    found = ask(editor, "definition", "'pack[]", TESTS, "more.flowtest.yaml")
    assert (found["uri"], found["range"]["start"]["line"]) == (editor.uri("order.yaml"), 14)
    found = ask(editor, "definition", "order.yaml", TESTS, "more.flowtest.yaml")
    assert found == {"uri": editor.uri("order.yaml"), "range": span(0, 0, 0)}
    items = ask(editor, "completion", "label, pack]", TESTS, "more.flowtest.yaml")["items"]
    assert {"charge", "pack[].label", "check.label"} <= {each["label"] for each in items}
    changes = ask(editor, "rename", "mail:", TESTS, "more.flowtest.yaml", newName="send")["changes"]
    assert {uri.rpartition("/")[2] for uri in changes} == {"order.yaml", "order.flowtest.yaml", "more.flowtest.yaml"}
    editor.notify("textDocument/didClose", {"textDocument": {"uri": editor.uri("more.flowtest.yaml")}})


@pytest.mark.parametrize("method", ["hover", "definition", "completion", "prepareRename", "documentHighlight"])
def test_files_that_are_not_open_and_places_that_are_not_there(editor, method):
    assert ask(editor, method, "mail}", name="closed.yaml") in (None, [], {"isIncomplete": False, "items": []})
    editor.request(f"textDocument/{method}", editor.at("order.yaml", 4_000_000, 4_000_000))
