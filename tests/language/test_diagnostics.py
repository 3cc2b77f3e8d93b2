"""Diagnostics: wording, order, summary and output."""

import re

import pytest

from flowserver.base.errors import InvalidArgument
from flowserver.language.diagnostics import (
    DIAGNOSTICS,
    DefinitionRejected,
    Diagnostic,
    Severity,
    render,
    shown,
)
from flowserver.language.graph import Span
from flowserver.language.parser import parse
from tests.language.definitions import HEADER, LIMITS, diagnostics_of

TYPO = HEADER + "- type: pass\n  name: a\n  inputMapping: []\n  ends: true\n"


def rendered(text: str) -> list[str]:
    return [render(diagnostic, text, "flow.yaml") for diagnostic in diagnostics_of(text)]


def hints(text: str) -> list[str | None]:
    return [diagnostic.hint for diagnostic in diagnostics_of(text)]


def test_a_rejection_is_an_invalid_argument_that_names_the_first_errors() -> None:
    with pytest.raises(InvalidArgument) as caught:
        parse(TYPO, LIMITS)
    assert isinstance(caught.value, DefinitionRejected)
    assert (caught.value.code, caught.value.status) == ("InvalidArgument", 400)
    told = caught.value.message.split("; ")
    assert told[0] == "line 6, column 3: `inputMapping` is not an attribute of a pass step"
    assert len(told) == 2
    assert [diagnostic.id for diagnostic in caught.value.diagnostics] == ["unknown-attribute"] * 2


def test_a_rejection_names_five_errors_and_counts_the_others() -> None:
    text = "version: v1\ntype: flow\nsteps:\n" + "  - 1\n" * 8
    with pytest.raises(DefinitionRejected) as caught:
        parse(text, LIMITS)
    message = caught.value.message
    assert [f"line {line}, column 5: " in message for line in range(4, 12)] == [True] * 5 + [False] * 3
    assert message.endswith(" (and 3 more; flowserver validate shows all)")


def test_warnings_are_included_but_not_counted() -> None:
    choice = "- {type: choice, name: a, choices: [{condition: $.x}]}\n"
    with pytest.raises(DefinitionRejected) as caught:
        parse(HEADER + choice + "- {type: loop, name: b}\n", LIMITS)
    assert [item.severity for item in caught.value.diagnostics] == [Severity.WARNING, Severity.ERROR]
    assert caught.value.message == "line 5, column 10: `loop` is not a type of step"


def test_a_valid_definition_keeps_its_warnings() -> None:
    (warning,) = parse(HEADER + "- {type: choice, name: a, choices: [{condition: $.x}]}\n", LIMITS).warnings
    assert (warning.id, warning.severity) == ("choice-without-default", Severity.WARNING)


def test_a_choice_that_always_goes_somewhere_needs_no_default() -> None:
    definition = parse(HEADER + "- {type: choice, name: a, choices: [{condition: $.x}, {condition: true}]}\n", LIMITS)
    assert definition.warnings == ()


def test_rendering() -> None:
    assert rendered(TYPO)[0].splitlines() == [
        "flow.yaml:6:3: error[unknown-attribute]: `inputMapping` is not an attribute of a pass step",
        "    6 |   inputMapping: []",
        "      |   ^^^^^^^^^^^^",
        "  hint: did you mean `inputMappings`?",
    ]


def test_rendering_without_a_hint() -> None:
    assert rendered("a: b\nc\nd: e\n")[0].splitlines()[1:] == ["    3 | d: e", "      | ^"]


def test_carets_are_below_wide_characters_and_tabs() -> None:
    lines = rendered("\ufeff{版本: 一,\t类型: 二}")
    assert lines[1].splitlines()[1:3] == ["    1 | {版本: 一, 类型: 二}", "      |  ^^^^"]
    assert [line.splitlines()[2].index("^") - 8 for line in lines] == [1, 1, 1, 1, 11]


def test_carets_stop_at_the_end_of_the_line() -> None:
    (text,) = rendered(HEADER + "- {type: fail, name: a, error: [1,\n  2]}\n")
    assert text.splitlines()[1:3] == ["    4 | - {type: fail, name: a, error: [1,", "      | " + " " * 31 + "^^^"]


def test_long_lines_are_cut_around_the_position() -> None:
    line = (
        "{version: v1, type: flow, steps: ["
        + "{type: pass, name: a}, " * 20
        + "{type: loop, name: b}"
        + " " * 200
        + "]}"
    )
    lines = next(text for text in rendered(line) if "unknown-step-type" in text).splitlines()
    assert lines[1].startswith("    1 | …")
    assert lines[1].endswith("…")
    assert len(lines[1]) == 110
    start = lines[2].index("^")
    assert lines[1][start : start + 4] == "loop"
    assert lines[2].count("^") == 4


@pytest.mark.parametrize("separator", ["\r", "\r\n", "\x85", "\u2028"])
def test_lines_are_counted_as_yaml_counts_them(separator: str) -> None:
    assert rendered(TYPO.replace("\n", separator))[0].splitlines()[1] == "    6 |   inputMapping: []"


def test_a_position_past_the_end_is_an_empty_line() -> None:
    found = Diagnostic("not-yaml", Severity.ERROR, "it ends", Span(9, 1, 9, 2))
    assert render(found, "a", "f").splitlines()[1] == "    9 | "


def test_messages_hold_no_control_characters() -> None:
    (found,) = diagnostics_of(HEADER + '- {type: pass, name: a, "\\e[31m\\u0085": 1}\n')
    assert found.message.startswith("`\N{REPLACEMENT CHARACTER}[31m\N{REPLACEMENT CHARACTER}`")


@pytest.mark.parametrize(("text", "quoted"), [("a", "`a`"), ("x" * 60, f"`{'x' * 60}`"), ("x" * 61, f"`{'x' * 59}…`")])
def test_quoting(text: str, quoted: str) -> None:
    assert shown(text) == quoted


@pytest.mark.parametrize("id", DIAGNOSTICS)
def test_ids_and_their_descriptions(id: str) -> None:
    assert re.fullmatch(r"[a-z]+(-[a-z]+)*", id)
    assert re.fullmatch(r"[A-Z].*\.", DIAGNOSTICS[id])


@pytest.mark.parametrize(
    ("steps", "hint"),
    [
        ("- {type: pass, name: a, outputmapping: []}", "did you mean `outputMappings`?"),
        ("- {type: pass, name: a, retry: []}", "`retry` belongs to a task step"),
        (
            "- {type: fail, name: a, end: true}",
            "`end` belongs to a task step, a wait step, a pass step, a choice step, a parallel step or a foreach step",
        ),
        ("- {type: pass, name: a, xyzzy: []}", None),
        ("- {type: task, name: a, resourceArn: 'acs:fc:::functions/f', timeout: 5}", "did you mean `timeoutSeconds`?"),
        (
            "- {type: task, name: a, resourceArn: 'acs:fc:::functions/f', retry: [{errors: [E], interval: 5}]}",
            "did you mean `intervalSeconds`?",
        ),
        (
            "- {type: task, name: a, resourceArn: 'acs:fc:::functions/f', retry: [{errors: [E], attempts: 5}]}",
            "did you mean `maxAttempts`?",
        ),
        ("- {type: task, name: a, resourceArn: 'acs:fc:::functions/f', appi: []}", None),
        (f"- {{type: pass, name: a, {'x' * 50}: []}}", None),
        ("- {type: parralel, name: a}", "did you mean `parallel`?"),
        ("- {type: xyzzy, name: a}", "the types are task, wait, pass, choice, parallel, foreach, succeed, fail"),
        ("- {type: pass, name: 1}", "for example `name: Charge`"),
        ("- {type: fail, name: a, cause: 1}", "write it in quotes if it is meant as a text"),
        ("- {type: pass, name: [a]}", None),
        ("- {type: pass, name: a, end: 'true'}", "write true, without quotes"),
        ("- {type: pass, name: a, end: no}", "write false, without quotes"),
        ("- {type: pass, name: a, end: perhaps}", None),
        ("- {type: pass, name: a, inputMappings: b}", None),
        ("- {type: choice, name: a, default: b}", None),
        (
            "- {type: task, name: a, resourceArn: 'acs:fc:::functions/f', timeoutSeconds: '5'}",
            "write it without quotes",
        ),
        ("- {type: pass, name: a, end: 1}", None),
        (
            "- {type: pass, name: a, inputMappings: {target: a}}",
            "write a list: put `[` and `]` around it, or begin every entry with `- `",
        ),
        ("- {type: wait, name: a, duration: '5'}", "write it without quotes"),
        ("- {type: wait, name: a, duration: five}", None),
        ("- {type: choice, name: first, default: {goto: frist}}", "did you mean `first`?"),
        ("- {type: choice, name: abc, default: {goto: x}}", None),
        ("- {type: task, name: a, resourceArn: 'acs:fc:::functions/f', pattern: Sync}", "did you mean `sync`?"),
        (
            "- {type: task, name: a, resourceArn: 'acs:fc:::functions/f', pattern: async-http}",
            "the patterns are requestResponse, sync, waitForCallback",
        ),
        (
            "- {type: task, name: a, resourceArn: 'acs:fc:{r}:{a}:functions/f'}",
            "write your own names, without braces: `acs:fc:::functions/f`",
        ),
        (
            "- {type: task, name: a, resourceArn: 'acs:mns:{r}::/queues/q'}",
            "write your own names, without braces: `acs:mns:::/queues/q`",
        ),
        (
            "- {type: task, name: a, resourceArn: 'acs:mns:::queues/q/messages'}",
            "write acs:mns:::/queues/{queueName}/messages or acs:mns:::/topics/{topicName}/messages",
        ),
        (
            "- {type: task, name: a, resourceArn: 'acs:mns:::/queues/q/messages', pattern: sync,"
            " serviceParams: {MessageBody: $}}",
            "it runs with `requestResponse` or `waitForCallback`",
        ),
    ],
)
def test_hints(steps: str, hint: str | None) -> None:
    assert hints(HEADER + steps) == [hint]


def test_similar_names_are_not_searched_among_very_many() -> None:
    steps = "".join(f"- {{type: pass, name: step{number}}}\n" for number in range(150))
    text = HEADER + steps + "- {type: choice, name: last, default: {goto: step}}\n"
    assert hints(text) == [None]
