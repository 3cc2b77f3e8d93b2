"""What is shown of a place: attributes, steps, references, parameters."""

import pytest

from flowserver.editing.hover import hover_at
from tests.editing.conftest import FOLDER, ORDER, TESTS, Folder
from tests.editing.test_step_names import with_cursor


def shown(folder: Folder, name: str, text: str) -> tuple[str, str] | None:
    file, offset = folder.at_cursor(name, text)
    found = hover_at(file, offset, FOLDER / name, folder)
    return None if found is None else (file.text.text[slice(*found.extent)], found.markdown)


def test_an_attribute(folder: Folder):
    place, words = shown(folder, "order.yaml", with_cursor(ORDER, "catch:"))
    assert place == "catch"
    assert words == ("**catch**: a list\n\nWhere to go on after an error; the first rule that names it is used.")


@pytest.mark.parametrize(
    ("attribute", "words"),
    [
        ("timeoutSeconds: 5", "From 1 to 31536000."),
        ("pattern: sync", "One of `requestResponse`, `sync`, `waitForCallback`."),
        ("end: true", "Without it: false."),
    ],
)
def test_what_an_attribute_can_be(folder: Folder, attribute, words):
    text = ORDER.replace("    name: mail\n", f"    name: mail\n    {attribute}\n")
    assert words in shown(folder, "order.yaml", with_cursor(text, attribute))[1]


def test_a_required_attribute(folder: Folder):
    assert "It is required." in shown(folder, "order.yaml", with_cursor(ORDER, "steps:"))[1]


def test_a_step_with_its_data(folder: Folder):
    wanted = (
        "**mail**: a task step\n\nCalls `acs:mns:::/queues/mails/messages`.\n\nInput: `receipt`.\n\n"
        "Output: `MessageId`, `MessageBodyMD5`, `RequestId`."
    )
    for at in ("mail}", "mail\n    resource"):
        assert shown(folder, "order.yaml", with_cursor(ORDER, at)) == ("mail", wanted)
    assert shown(folder, "order.yaml", with_cursor(ORDER, "task\n    name: mail")) == ("task", wanted)


def test_a_step_of_a_definition_with_errors(folder: Folder):
    text = ORDER.replace("goto: mail}", "goto: nowhere}").replace("pass, name: label", "pass, name: alone")
    assert shown(folder, "order.yaml", with_cursor(text, "alone")) == ("alone", "**alone**: a pass step")
    assert folder.put("order.yaml", ORDER).known
    assert "Input: `receipt`" in shown(folder, "order.yaml", with_cursor(text, "mail\n    resource"))[1]


@pytest.mark.parametrize(
    ("at", "words"),
    [
        ("$local.receipt", "`$local.receipt` is there on some ways only: any value."),
        ("$local.error", "`$local.error` is always there: a text."),
        ("$local.id", "there if it comes from outside"),
        ("$.items", "there if it comes from outside"),
        ("$}", "`$` is always there: an object."),
    ],
)
def test_what_a_reference_reads(folder: Folder, at, words):
    assert words in shown(folder, "order.yaml", with_cursor(ORDER, at))[1]


def test_a_reference_that_finds_nothing(folder: Folder):
    text = ORDER.replace("$local.error", "$local.message")
    assert shown(folder, "order.yaml", with_cursor(text, "$local.message"))[1] == "`$local.message` is never there."


def test_a_parameter(folder: Folder):
    assert shown(folder, "order.yaml", with_cursor(ORDER, "MessageBody")) == (
        "MessageBody",
        "`MessageBody` must not be an empty text, or a path into the step's input. It is required.",
    )
    assert shown(folder, "order.yaml", with_cursor(ORDER, "InvocationType"))[1].startswith(
        "`InvocationType` must be Sync or Async"
    )


def test_nothing_to_say(folder: Folder):
    for at in ("v1", "it}", "receipt"):
        assert shown(folder, "order.yaml", with_cursor(ORDER, at)) is None
    assert shown(folder, "order.yaml", "¦") is None


def test_a_flow_test(folder: Folder):
    folder.put("order.yaml", ORDER)
    place, words = shown(folder, "order.flowtest.yaml", with_cursor(TESTS, "pack[]"))
    assert (place, words.splitlines()[0]) == ("'pack[].label'", "**label**: a task step")
    assert shown(folder, "order.flowtest.yaml", with_cursor(TESTS, "never"))[1].endswith("Steps that are not entered.")
    assert shown(folder, "order.flowtest.yaml", with_cursor(TESTS, "error"))[1].startswith("**error**: a text")
