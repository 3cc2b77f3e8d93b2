"""Where steps are named: go to a step, its references, its new name."""

import pytest

from flowserver.editing.step_names import (
    CannotRename,
    mention_at,
    name_extent,
    references,
    renamed,
    step_at,
    step_of_mention,
)
from tests.editing.conftest import CURSOR, FOLDER, ORDER, TESTS, Folder

FLOW = FOLDER / "order.yaml"
TEST = FOLDER / "order.flowtest.yaml"


def with_cursor(text: str, at: str, number: int = 0) -> str:
    """The text with the cursor after the first character of a word, the number-th of its kind."""
    offset = -1
    for _ in range(number + 1):
        offset = text.index(at, offset + 1)
    return text[: offset + 1] + CURSOR + text[offset + 1 :]


def line_of(text: str, offset: int) -> int:
    return text.count("\n", 0, offset) + 1


@pytest.mark.parametrize(
    ("at", "number", "line"),
    [("mail}", 0, 24), ("mail\n    default", 0, 24), ("charge}", 0, 5), ("charge\n", 0, 5), ("label,", 0, 15)],
)
def test_a_goto_leads_to_its_step(folder: Folder, at, number, line):
    file, offset = folder.at_cursor("order.yaml", with_cursor(ORDER, at, number))
    step = step_at(file, offset)
    assert line_of(ORDER, name_extent(file, step).start) == line


def test_other_places_lead_nowhere(folder: Folder):
    for at in ("type: task", "receipt", "name: mail", "acs:fc"):
        file, offset = folder.at_cursor("order.yaml", with_cursor(ORDER, at))
        assert step_at(file, offset) is None


def test_a_goto_to_another_list_leads_nowhere(folder: Folder):
    text = ORDER.replace("default: {goto: charge}", "default: {goto: label}")
    file, offset = folder.at_cursor("order.yaml", with_cursor(text, "label}", 1))
    assert step_at(file, offset) is None


def found_in(folder: Folder, text: str, at: str, number: int = 0) -> list[tuple[str, int]]:
    file, offset = folder.at_cursor("order.yaml", with_cursor(text, at, number))
    step = step_at(file, offset)
    texts = {None: file.text.text, TEST: folder.files[TEST].text.text} if TEST in folder.files else {None: text}
    places = list(references(file, step, FLOW, folder))
    assert all(texts[place.file][slice(*place.extent)].strip("'\"") == step.name for place in places)
    return [("test" if place.file else "flow", line_of(texts[place.file], place.extent.start)) for place in places]


def test_references(folder: Folder):
    folder.put("order.flowtest.yaml", TESTS)
    assert found_in(folder, ORDER, "mail}") == [("flow", 24), ("flow", 10), ("flow", 21), ("test", 2), ("test", 7)]
    assert found_in(folder, ORDER, "charge}") == [("flow", 5), ("flow", 22), ("test", 7), ("test", 9)]
    assert found_in(folder, ORDER, "pack") == [("flow", 12), ("test", 7), ("test", 8), ("test", 9)]


def test_of_two_steps_with_one_name_the_path_says_which(folder: Folder):
    folder.put("order.flowtest.yaml", TESTS)
    assert found_in(folder, ORDER, "label,") == [("flow", 15), ("test", 7), ("test", 9)]
    assert found_in(folder, ORDER, "label}") == [("flow", 20), ("test", 7)]


def rename(folder: Folder, text: str, at: str, new: str) -> dict[str, str]:
    """The texts after a renaming."""
    file, offset = folder.at_cursor("order.yaml", with_cursor(text, at))
    step = step_at(file, offset)
    edits: dict = {}
    for path, edit in renamed(file, step, new, FLOW, folder):
        edits.setdefault(path or FLOW, []).append(edit)
    changed = {}
    for path, of_file in edits.items():
        result = folder.files[path].text.text
        for edit in sorted(of_file, key=lambda each: each.extent, reverse=True):
            result = result[: edit.extent.start] + edit.text + result[edit.extent.end :]
        changed[path.name] = result
    return changed


def test_a_new_name_goes_to_gotos_and_flow_tests(folder: Folder):
    folder.put("order.flowtest.yaml", TESTS)
    changed = rename(folder, ORDER, "mail}", "send")
    assert changed["order.yaml"] == ORDER.replace("goto: mail", "goto: send").replace("name: mail", "name: send")
    assert changed["order.flowtest.yaml"] == TESTS.replace("{mail:", "{send:").replace(", mail]", ", send]")


def test_a_new_name_goes_to_the_paths_of_what_the_step_holds(folder: Folder):
    folder.put("order.flowtest.yaml", TESTS)
    changed = rename(folder, ORDER, "pack", "wrap")
    wanted = TESTS.replace("'pack[].label'", "'wrap[].label'").replace("'pack[0].label'", "'wrap[0].label'")
    assert changed["order.flowtest.yaml"] == wanted.replace("never: [label, pack]", "never: [label, wrap]")


def test_a_new_name_leaves_the_step_of_that_name_in_another_branch(folder: Folder):
    folder.put(
        "order.flowtest.yaml", "flow: order.yaml\ntests: [{name: a, steps: {'both[0].a': {}, 'both[1].a': {}}}]\n"
    )
    branch = "      - steps: [{type: pass, name: a%s}]\n"
    text = f"version: v1\ntype: flow\nsteps:\n  - type: parallel\n    name: both\n    branches:\n{branch}{branch}" % (
        "",
        "",
    )
    changed = rename(folder, text, "a}", "first")
    assert changed["order.flowtest.yaml"].endswith("{'both[0].first': {}, 'both[1].a': {}}}]\n")


@pytest.mark.parametrize(
    ("written", "new", "wanted"),
    [
        ("'a'", "b", "'b'"),
        ('"a"', "b", '"b"'),
        ("&x a", "b", "&x b"),
        ("&a a", "b", "&a b"),
        ("a", "true", '"true"'),
        ("a", "null", '"null"'),
        ("'a'", "true", "'true'"),
        (r'"\x61"', "b", '"b"'),
        (r'&x "\x61"', "b", '&x "b"'),
        (r'!!str "\x61"', "true", '!!str "true"'),
        ("!!str a", "b", "!!str b"),
    ],
)
def test_a_new_name_is_written_as_the_old_one_was(folder: Folder, written, new, wanted):
    text = "version: v1\ntype: flow\nsteps:\n  - type: pass\n    name: {}\n"
    file, offset = folder.at_cursor("order.yaml", text.format(f"{written}{CURSOR}"))
    ((_, edit),) = renamed(file, step_at(file, offset), new, FLOW, folder)
    result = file.text.text[: edit.extent.start] + edit.text + file.text.text[edit.extent.end :]
    assert result == text.format(wanted)


def test_a_path_that_is_written_with_escapes_keeps_its_other_steps(folder: Folder):
    text = ORDER.replace("label", "pack")
    test = TESTS.replace("label", "pack").replace("'pack[0].pack'", r'&x "\x70ack[0].pack"')
    assert test.count("&x") == 1
    folder.put("order.flowtest.yaml", test)
    changed = rename(folder, text, "pack\n", "wrap")
    assert '&x "wrap[0].pack"' in changed["order.flowtest.yaml"]


def test_an_alias_is_renamed_once(folder: Folder):
    text = (
        "version: v1\ntype: flow\nsteps:\n  - {type: pass, name: &n here}\n"
        "  - {type: choice, name: c, choices: [{condition: true, goto: *n}]}\n"
    )
    assert rename(folder, text, "here", "there")["order.yaml"] == text.replace("here", "there")


@pytest.mark.parametrize("new", ["", "a b", "1a", "charge", "x" * 129, "a.b"])
def test_a_name_that_it_cannot_have_is_refused(folder: Folder, new):
    with pytest.raises(CannotRename):
        rename(folder, ORDER, "mail}", new)


def test_nothing_is_renamed_in_a_broken_text(folder: Folder):
    folder.put("order.yaml", ORDER)
    with pytest.raises(CannotRename, match="not YAML"):
        rename(folder, ORDER + "  ]", "mail}", "send")


def test_navigation_goes_on_in_a_broken_text(folder: Folder):
    folder.put("order.yaml", ORDER)
    broken = ORDER.replace("name: pack\n", "name: pack\n    : ]\n    a\n")
    file, offset = folder.at_cursor("order.yaml", with_cursor(broken, "mail\n    default"))
    assert file.tree is None
    extent = name_extent(file, step_at(file, offset))
    assert broken[slice(*extent)] == "mail"
    assert line_of(broken, extent.start) == 26


def test_a_flow_test_leads_to_steps(folder: Folder):
    folder.put("order.yaml", ORDER)
    for at, number, line in (
        ("mail:", 0, 24),
        ("pack[]", 0, 15),
        ("check.", 0, 20),
        ("label,", 0, 15),
        ("pack]", 0, 12),
    ):
        test, offset = folder.at_cursor("order.flowtest.yaml", with_cursor(TESTS, at, number))
        file, definition, step = step_of_mention(mention_at(test, offset), test, TEST, folder)
        assert file == FLOW
        assert line_of(ORDER, name_extent(definition, step).start) == line


def test_properties_of_a_run_name_steps(folder: Folder):
    test = (
        "flow: order.yaml\ntests:\n  - name: a\n    expect:\n      atMostOnce: [mail, services/mail]\n"
        "      compensated: {charge: mail, 'pack[].label': {by: mail, when: $.mail}}\n"
    )
    folder.put("order.flowtest.yaml", test)
    changed = rename(folder, ORDER, "mail}", "send")["order.flowtest.yaml"]
    wanted = test.replace("[mail,", "[send,").replace("charge: mail", "charge: send").replace("by: mail", "by: send")
    assert changed == wanted
    changed = rename(folder, ORDER, "charge}", "pay")["order.flowtest.yaml"]
    assert changed == test.replace("{charge:", "{pay:")


CHILD = "version: v1\ntype: flow\nsteps: [{type: pass, name: inner}, {type: pass, name: charge}]\n"


def test_a_sub_flow_is_renamed_where_no_step_of_the_flow_is_meant(folder: Folder):
    folder.put("order.yaml", ORDER)
    test = (
        "flow: order.yaml\nflows: {child: {real: child.yaml}}\ntests: [{name: a, expect: {never: [inner, charge]}}]\n"
    )
    folder.put("order.flowtest.yaml", test)
    for name, wanted in (("inner", test.replace("inner", "b")), ("charge", test)):
        file, offset = folder.at_cursor("child.yaml", with_cursor(CHILD, name))
        edits = [
            edit for path, edit in renamed(file, step_at(file, offset), "b", FOLDER / "child.yaml", folder) if path
        ]
        result = test
        for edit in edits:
            result = result[: edit.extent.start] + edit.text + result[edit.extent.end :]
        assert result == wanted


CONDITIONS = """\
flow: order.yaml
tests:
  - name: a
    expect:
      compensated: {label: {by: charge, when: '$.calls.mail == 0'}}
      always:
        - '$.entered.mail == 0 && $.output.mail == "mail"'
        - "$.calls[\\"mail\\"] < 2 || $.succeeded[\\"pack[].label\\"] == 1"
        - {if: '"mail" in $.path', then: '$.path[2] == "mail"'}
        - $.calls.mails == 0 && $.input.entered.mail == $.calls.mail
sim: {always: [{if: $.calls.mail == 1, then: '$.status == "mail"'}, $.calls.mail <= 1]}
"""


def test_a_new_name_goes_to_conditions(folder: Folder):
    folder.put("order.flowtest.yaml", CONDITIONS)
    wanted = CONDITIONS
    for before, after in (
        ("calls.mail ", "calls.send "),
        ("$.calls.mail\n", "$.calls.send\n"),
        ("$.entered.mail", "$.entered.send"),
        (r"[\"mail\"]", r"[\"send\"]"),
        ('"mail" in', '"send" in'),
        ('[2] == "mail"', '[2] == "send"'),
    ):
        wanted = wanted.replace(before, after)
    wanted = wanted.replace("$.input.entered.send", "$.input.entered.mail")
    assert rename(folder, ORDER, "mail}", "send")["order.flowtest.yaml"] == wanted
    assert found_in(folder, ORDER, "mail}").count(("test", 9)) == 2
    changed = rename(folder, ORDER, "pack", "wrap")["order.flowtest.yaml"]
    assert changed == CONDITIONS.replace("pack[].label", "wrap[].label")


def test_a_new_name_that_is_no_bare_key_is_written_in_brackets(folder: Folder):
    folder.put("order.flowtest.yaml", CONDITIONS)
    changed = rename(folder, ORDER, "mail}", "send-it")["order.flowtest.yaml"]
    expect = changed.splitlines()
    assert expect[4].endswith("""when: '$.calls["send-it"] == 0'}}""")
    assert expect[6].endswith("""'$.entered["send-it"] == 0 && $.output.mail == "mail"'""")
    assert expect[7].endswith(r'''"$.calls[\"send-it\"] < 2 || $.succeeded[\"pack[].label\"] == 1"''')
    assert expect[9].endswith("""'$.calls.mails == 0 && $.input.entered.mail == $.calls["send-it"]'""")
    assert expect[10].endswith("""'$.calls["send-it"] <= 1']}""")


def test_a_condition_leads_to_a_step(folder: Folder):
    folder.put("order.yaml", ORDER)
    for at in ("mail == 0 &&", "pack[].label", "mail == 1"):
        test, offset = folder.at_cursor("order.flowtest.yaml", with_cursor(CONDITIONS, at))
        assert step_of_mention(mention_at(test, offset), test, TEST, folder) is not None
