"""The schemas in the language server that YAML editors use: what it marks, completes and shows by them."""

import re
from collections.abc import Iterator

import pytest

from flowserver.cli.schema import FOLDER
from tests.docs.pages import ROOT
from tests.lsp.editor import Editor
from tests.support.node import NODE
from tests.support.server import ServerProcess

SERVER = ROOT / "tests" / "editing" / "yaml_language_server" / "node_modules" / "yaml-language-server"
COMMAND = (NODE, str(SERVER / "bin" / "yaml-language-server"), "--stdio")


@pytest.fixture(scope="module")
def editor(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Editor]:
    with Editor(tmp_path_factory.mktemp("flows"), command=COMMAND) as started:
        started.settings["yaml"] = {"validate": True, "completion": True, "hover": True, "customTags": ["!Ref scalar"]}
        started.knows_versions = False
        started.initialize()
        yield started


def with_schema(text: str, kind: str = "flow") -> str:
    """The text with the line that names its schema, as `flowserver schema --path` prints it."""
    return f"# yaml-language-server: $schema={FOLDER / f'{kind}.schema.json'}\n{text}"


def marked(editor: Editor, name: str, text: str) -> list[tuple[int, str]]:
    found = editor.open(name, text)
    return sorted((each["range"]["start"]["line"], each["message"]) for each in found)


def test_it_marks_what_the_schema_refuses(editor):
    text = with_schema(
        "version: v1\ntype: flow\nsteps:\n"
        "  - type: task\n    name: a\n    resourceArn: acs:mns:::/queues/q/messages\n    pattern: sync\n"
        "    serviceParams: {MesageBody: $}\n    retry: [{errors: [E], maxAttempts: -1}]\n"
        "  - {type: wait, name: 1x, durration: 3}\n  - {type: tsk, name: b}\n"
    )
    found = marked(editor, "wrong.yaml", text)
    for line, words in (
        (7, 'Valid values: "requestResponse", "waitForCallback"'),
        (8, "Property MesageBody is not allowed"),
        (8, 'Missing property "MessageBody"'),
        (9, "Value is below the minimum of 0"),
        (10, "Property durration is not allowed"),
        (10, "Unique in its list: letters, digits, _, -; at most 128."),
        (11, "Value is not accepted"),
    ):
        assert any(at == line and words in message for at, message in found), (line, words, found)


EXAMPLES = sorted(ROOT.glob("examples/*/*.yaml"))


@pytest.mark.parametrize("kind", ["flow", "flowtest"])
def test_it_marks_nothing_in_the_examples(editor, kind):
    texts = {
        file: file.read_text("utf-8") for file in EXAMPLES if file.name.endswith(".flowtest.yaml") == (kind != "flow")
    }
    checked = [file for file, text in texts.items() if kind != "flow" or re.search("^version: v1", text, re.MULTILINE)]
    assert len(checked) >= 4
    for file in checked:
        name = f"{file.parent.name}-{file.name}"
        assert marked(editor, name, with_schema(texts[file], kind)) == []


def labels(editor: Editor, name: str, text: str) -> set[str]:
    before = text[: text.index("¦")]
    editor.open(name, text.replace("¦", ""))
    place = editor.at(name, before.count("\n"), len(before.rpartition("\n")[2]))
    found = editor.request("textDocument/completion", place)
    return {item["label"] for item in found["items"]}


@pytest.mark.parametrize(
    ("step", "some"),
    [
        ("  - type: ¦\n", {"task", "foreach", "succeed"}),
        ("  - type: wait\n    name: w\n    ¦\n", {"duration", "timestamp", "inputMappings", "end"}),
        ("  - type: task\n    name: t\n    action: ocr:Read\n    pattern: ¦\n", {"requestResponse"}),
        (
            "  - type: task\n    name: t\n    resourceArn: acs:mns:::/queues/q/messages\n    serviceParams:\n      ¦\n",
            {"MessageBody", "Priority", "DelaySeconds"},
        ),
        (
            "  - type: task\n    name: t\n    resourceArn: acs:fc:::functions/f\n    catch: [{errors: [¦]}]\n",
            {"FnF.ALL", "FC.Unknown"},
        ),
    ],
    ids=["type", "attributes", "patterns", "parameters", "errors"],
)
def test_it_completes(editor, step, some, request):
    text = with_schema(f"version: v1\ntype: flow\nsteps:\n{step}")
    assert some <= labels(editor, f"{request.node.callspec.id}.yaml", text)


def test_it_completes_flow_tests(editor):
    text = with_schema("flow: a.yaml\ntests:\n  - name: a\n    expect:\n      ¦\n", "flowtest")
    assert {"status", "output", "never", "took"} <= labels(editor, "a.flowtest.yaml", text)


def test_it_shows_what_an_attribute_means(editor):
    text = with_schema("version: v1\ntype: flow\nsteps:\n  - {type: pass, name: p, end: true}\n")
    editor.open("hover.yaml", text)
    line = text.splitlines()[4]
    found = editor.request("textDocument/hover", editor.at("hover.yaml", 4, line.index("end") + 1))
    assert "Ends the list that contains the step, successfully. Without it: false." in found["contents"]["value"]


def test_the_schema_of_a_server(editor, sqlite_url):
    """The line names the schema's place on a server, which needs no key."""
    with ServerProcess(sqlite_url) as server:
        text = "version: v1\ntype: flow\nsteps: [{type: tsk, name: a}]\n"
        line = f"# yaml-language-server: $schema={server.url}/v1/schemas/flow.json\n"
        ((at, message),) = marked(editor, "served.yaml", line + text)
        assert (at, message.partition(".")[0]) == (3, "Value is not accepted")
