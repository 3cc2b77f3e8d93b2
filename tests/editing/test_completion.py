"""What is offered at a place, in texts that are YAML and in those that are not yet."""

import json

import pytest

from flowserver.editing.completion import completions
from flowserver.editing.completion_items import Item
from flowserver.editing.cursor import cursor_at
from flowserver.editing.files import Definition
from flowserver.editing.flow_test_completion import flow_test_completions
from flowserver.language.fields import STEPS
from flowserver.language.parser import parse
from tests.editing.conftest import FOLDER, LIMITS, ORDER, TESTS, Folder


def offered(folder: Folder, name: str, text: str) -> tuple[str, dict[str, Item]]:
    """What is replaced, and what is offered for it."""
    file, offset = folder.at_cursor(name, text)
    cursor = cursor_at(file, offset)
    if cursor is None:
        return "", {}
    if isinstance(file, Definition):
        extent, items = completions(file, cursor)
    else:
        extent, items = flow_test_completions(file, cursor, FOLDER / name, folder)
    assert extent.start <= offset <= extent.end
    return file.text.text[slice(*extent)], {item.label: item for item in items}


def in_order(folder: Folder, old: str, new: str) -> tuple[str, dict[str, Item]]:
    """What is offered in the order flow after a change that has the cursor in it."""
    assert folder.put("order.yaml", ORDER).known  # as the check of the last valid text finds it
    assert ORDER.count(old) == 1, old
    return offered(folder, "order.yaml", ORDER.replace(old, new))


PACK = "    iterationMapping: {collection: $.items, item: it}\n"


@pytest.mark.parametrize("typed", ["¦", "en¦", "e¦nd", "en¦: true"])
def test_attributes_of_a_step(folder: Folder, typed):
    replaced, items = in_order(folder, PACK, f"{PACK}    {typed}\n")
    assert replaced == typed.replace("¦", "").removesuffix(": true")
    assert set(items) == set(STEPS["foreach"].fields) - {"type", "name", "iterationMapping", "steps"}
    assert items["end"].insert == ("end" if typed.endswith("true") else "end: $1")


def test_lists_and_mappings_begin_on_a_line_of_their_own(folder: Folder):
    _, items = in_order(folder, PACK, f"{PACK}    ¦\n")
    assert items["outputMappings"].insert == "outputMappings:\n  - $1"
    _, items = in_order(folder, "default: {goto: charge}", "¦")
    assert items["default"].insert == "default:\n  $1"


def test_attributes_in_braces(folder: Folder):
    replaced, items = in_order(folder, "{errors: [CardDeclined], goto: mail}", "{err¦}")
    assert (replaced, set(items)) == ("err", {"errors", "goto"})
    assert items["errors"].insert == "errors: [$1]"
    _, items = in_order(folder, "{errors: [CardDeclined], goto: mail}", "{errors: [E], ¦")
    assert set(items) == {"goto"}


def test_whole_steps_are_valid(folder: Folder):
    _, items = in_order(folder, "  - type: foreach\n", "  - ¦\n  - type: foreach\n")
    assert [name for name in items if name.endswith(" step")] == [f"{name} step" for name in STEPS]
    fillings = {
        "task": ["a", "acs:fc:::functions/f"],
        "wait": ["a", "1"],
        "choice": ["a", "condition: true"],
        "parallel": ["a", "steps: [{type: pass, name: b}]"],
        "foreach": ["a", "{collection: $.a, item: b}", "{type: pass, name: b}"],
    }
    for name in STEPS:
        text = items[f"{name} step"].insert
        for number, filling in enumerate(fillings.get(name, ["a"]), start=1):
            text = text.replace(f"${number}", filling)
        assert "$1" not in text
        indented = text.replace("\n", "\n  ")  # an editor indents as the line with the cursor
        assert parse(f"version: v1\ntype: flow\nsteps:\n  - {indented}\n", LIMITS).flow.root.steps[0].name == "a"


def test_a_step_in_a_list_that_has_none(folder: Folder):
    _, items = offered(folder, "a.yaml", "version: v1\ntype: flow\nsteps:\n  ¦\n")
    assert items["pass step"].insert == "- type: pass\n  name: $1"
    _, items = offered(folder, "a.yaml", "version: v1\ntype: flow\nsteps:\n  - ¦\n")
    assert items["pass step"].insert == "type: pass\n  name: $1"


def test_attributes_of_the_flow(folder: Folder):
    _, items = offered(folder, "a.yaml", "version: v1\nt¦\nsteps: []\n")
    assert set(items) == {"type", "name", "inputMappings", "outputMappings", "timeoutSeconds"}


def test_only_one_of_two_attributes_is_offered(folder: Folder):
    _, items = in_order(folder, "    name: mail\n", "    name: mail\n    ¦\n")
    assert "action" not in items
    assert {"pattern", "retry"} <= set(items)


@pytest.mark.parametrize(
    ("old", "new", "some"),
    [
        ("type: foreach", "type: ¦", {*STEPS}),
        ("type: foreach", "type: fo¦", {*STEPS}),
        ("goto: mail}", "goto: ¦}", {"charge", "pack", "check", "mail"}),
        ("default: {goto: charge}", "default: {goto: c¦", {"charge", "pack", "check", "mail"}),
        ("type: flow", "type: ¦", {"flow"}),
        ("version: v1", "version: ¦", {"v1", "v1beta1"}),
        ("[CardDeclined]", "[¦]", {"FnF.ALL", "FC.Unknown"}),
        ("[CardDeclined]", "[CardDeclined, F¦", {"FnF.ALL", "FC.Unknown"}),
        ("InvocationType: Async", "InvocationType: ¦", {"Sync", "Async", "$"}),
        ("{MessageBody: $}", "{MessageBody: $¦}", {"$", "$.receipt"}),
        ("{MessageBody: $}", "{MessageBody: $, ¦}", {"Priority", "DelaySeconds"}),
        ("$local.receipt", "$local.¦", {"$input", "$local", "$local.receipt", "$local.why", "$context.step.name"}),
        ("$local.error", "¦", {"$local.error", "$local.cause", "$input"}),
        ('$.why == ""', "$.w¦", {"$.receipt"}),
        ('$.why == ""', '$.why == "" && $.¦', {"$.receipt"}),
        ("$.items", "$.¦", {"$.receipt"}),
    ],
)
def test_values(folder: Folder, old, new, some):
    _, items = in_order(folder, old, new)
    assert some <= set(items)


def test_values_of_flags(folder: Folder):
    _, items = in_order(folder, PACK, f"{PACK}    end: ¦\n")
    assert set(items) == {"true", "false"}


def test_errors_of_the_file_are_offered(folder: Folder):
    _, items = in_order(
        folder, "    resourceArn: acs:mns", "    retry:\n      - errors:\n          - C¦\n    resourceArn: acs:mns"
    )
    assert items["CardDeclined"].detail == "in this file"


def test_resources_replace_the_whole_value(folder: Folder):
    replaced, items = in_order(folder, "acs:mns:::/queues/mails/messages", "acs:fc:::serv¦")
    assert replaced == "acs:fc:::serv"
    assert items["acs:fc:::services/shop/functions/charge"].detail == "in this file"
    assert "acs:fnf:::flow/{flowName}" in items
    _, items = in_order(folder, "resourceArn: acs:mns:::/queues/mails/messages", "action: ¦")
    assert set(items) == {"fnf:StartExecution"}


def test_json(folder: Folder):
    text = json.dumps(
        {"version": "v1", "type": "flow", "steps": [{"type": "CURSOR", "name": "a"}, {"type": "pass", "name": "b"}]},
        indent=2,
    )
    replaced, items = offered(folder, "a.yaml", text.replace("CURSOR", "pa¦"))
    assert (replaced, set(items)) == ("pa", {*STEPS})
    replaced, items = offered(folder, "a.yaml", text.replace('"type": "CURSOR"', '"ty¦"'))
    assert (replaced, items["type"].insert) == ("ty", "type")


IN_JSON = """\
{
  "version": "v1",
  "type": "flow",
  "steps": [
    {"type": "task", "name": "a", "resourceArn": "acs:fc:::functions/f", KEY},
    STEP
    {"type": "fail", "name": "b", "error": "E"}
  ]
}
"""


def test_what_json_gets_has_its_quotes(folder: Folder):
    text = IN_JSON.replace("    STEP\n", "")
    _, items = offered(folder, "a.yaml", text.replace("KEY", "¦"))
    assert items["pattern"].insert == '"pattern": "$1"'
    assert items["inputMappings"].insert == '"inputMappings": [$1]'
    assert items["timeoutSeconds"].insert == '"timeoutSeconds": $1'
    _, items = offered(folder, "a.yaml", text.replace("KEY", '"pa¦"'))
    assert items["pattern"].insert == "pattern"
    _, items = offered(folder, "a.yaml", text.replace("KEY", '"pattern": ¦'))
    assert items["sync"].insert == '"sync"'
    _, items = offered(folder, "a.yaml", text.replace("KEY", '"pattern": "¦"'))
    assert items["sync"].insert == "sync"
    _, items = offered(folder, "a.yaml", text.replace("KEY", '"end": ¦'))
    assert items["true"].insert == "true"


def test_whole_steps_in_json_are_valid_json(folder: Folder):
    _, items = offered(folder, "a.yaml", IN_JSON.replace(", KEY", "").replace("STEP", "{¦},"))
    for name in STEPS:
        step = json.loads(f"{{{items[f'{name} step'].plain}}}".replace(": ,", ": 1,").replace(": }", ": 1}"))
        assert (step["type"], "name" in step) == (name, "name" in STEPS[name].fields)


def test_nothing_is_offered_where_nothing_can_be_known(folder: Folder):
    for text in ("¦", "- ¦", "a: [{b: ¦", "version: v1\ntype: flow\nsteps: []\n\x00¦"):
        _, items = offered(folder, "a.yaml", text)
        assert items == {} or text in ("¦",)


@pytest.mark.parametrize(
    ("old", "new", "some", "others"),
    [
        ("expect:\n", "expect:\n      ¦\n", {"status", "output", "took"}, {"never", "calls"}),
        ("[label, pack]", "[¦]", {"charge", "pack[].label", "check.label"}, {"label"}),
        ("[label, pack]", "[label, pa¦", {"charge", "pack[].label", "check.label"}, {"label"}),
        ("{mail: {}}", "{¦}", {"charge", "mail", "label"}, {"pack", "check"}),
        ("{mail: {}}", "{mail: {¦}}", {"return", "error", "after"}, {"succeed"}),
        ("{charge: {error: CardDeclined}}", "{¦}", {"charge", "print"}, {"mails"}),
        ("{error: CardDeclined}", "{error: ¦}", {"FnF.TaskTimeout"}, set()),
        ("{error: CardDeclined}", "[{always: ¦}]", {"true", "false"}, set()),
        ("path: [charge, 'pack[].label', \"check.label\", mail]", "status: ¦", {"Succeeded", "Failed"}, {"Running"}),
        ("[label, pack]", "[]\n      compensated: {charge: ¦}", {"mail", "check.label"}, {"label"}),
        ("[label, pack]", "[]\n      compensated: {¦}", {"mail", "pack"}, {"mails"}),
        ("[label, pack]", "[]\n      compensated: {charge: {¦}}", {"by", "when"}, set()),
        ("[label, pack]", "[]\n      always: [{¦}]", {"then", "if"}, set()),
        ("{charge: 1, ", "{¦, ", {"mail", "mails"}, {"pack"}),
    ],
)
def test_flow_tests(folder: Folder, old, new, some, others):
    folder.put("order.yaml", ORDER)
    assert TESTS.count(old) == 1
    _, items = offered(folder, "order.flowtest.yaml", TESTS.replace(old, new))
    assert some <= set(items)
    assert not others & set(items)
