"""Hints: the correction that a finding suggests, and the finding that is gone after it."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from string import Formatter

import pytest

import flowserver.language
from flowserver.language.hints import Hint
from tests.language.definitions import HEADER, diagnostics_of


def source(text: str) -> str:
    """A step with a mapping of this source, in one line."""
    return f"- {{type: pass, name: a, outputMappings: [{{target: x, source: {text}}}]}}"


def calling(resource: str, params: str = "") -> str:
    """A task step with this resource."""
    given = f", serviceParams: {{{params}}}" if params else ""
    return f"- {{type: task, name: a, resourceArn: 'acs:{resource}'{given}}}"


def iterating(mapping: str) -> str:
    """A foreach step with this iterationMapping."""
    return f"- {{type: foreach, name: a, iterationMapping: {{{mapping}}}, steps: [{{type: pass, name: c}}]}}"


def whole(text: str) -> str:
    """A definition; steps get its head."""
    return HEADER + text if text.lstrip().startswith("- ") else text


def pattern_of(hint: Hint) -> str:
    """What a hint of this template matches."""
    return "".join(re.escape(plain) + (".+" if name else "") for plain, name, _, _ in Formatter().parse(hint))


def shortened(value: object) -> str | None:
    """The ids of tests: the hint's name alone."""
    return value.name if isinstance(value, Hint) else "" if isinstance(value, str) else None


def hints(steps: str) -> list[str | None]:
    return [diagnostic.hint for diagnostic in diagnostics_of(HEADER + steps)]


@pytest.mark.parametrize(
    ("target", "params", "hint"),
    [
        ("resourceArn: 'acs:fnf:::flow/f'", "input: $", "did you mean `Input`?"),
        ("resourceArn: 'acs:fnf:::flow/f'", "Execution: a", "did you mean `ExecutionName`?"),
        ("resourceArn: 'acs:fnf:::flow/f'", "order: $", "a flow gets its `Input`"),
        ("resourceArn: 'acs:fc:::functions/f'", "InvokationType: Async", "did you mean `InvocationType`?"),
        ("resourceArn: 'acs:fc:::functions/f'", "n: 1", "a function gets the step's input: use `inputMappings`"),
        ("resourceArn: 'acs:fc:::functions/f'", "InvocationType: async", "did you mean `Async`?"),
        ("resourceArn: 'acs:fc:::functions/f'", "InvocationType: [Async]", None),
        (
            "resourceArn: 'acs:mns:::/queues/q/messages'",
            "MessageBody: a, DelaySecond: 5",
            "did you mean `DelaySeconds`?",
        ),
        ("resourceArn: 'acs:mns:::/queues/q/messages'", "MessageBody: a, n: 1", "what is sent is the `MessageBody`"),
        (
            "resourceArn: 'acs:mns:::/topics/t/messages'",
            "MessageBody: a, n: 1",
            "what is published is the `MessageBody`",
        ),
    ],
)
def test_parameters(target: str, params: str, hint: str | None) -> None:
    assert hints(f"- {{type: task, name: a, {target}, serviceParams: {{{params}}}}}") == [hint]


@pytest.mark.parametrize(
    ("collection", "hint"),
    [
        (
            "$input.order.ids",
            "write `$.ids`, a path into the step's input, with "
            "`inputMappings: [{target: ids, source: $input.order.ids}]`",
        ),
        ("$input", None),
        ("ids", None),
    ],
)
def test_a_reference_where_a_path_is_expected(collection: str, hint: str | None) -> None:
    iteration = f"iterationMapping: {{collection: {collection}, item: i}}"
    assert hints(f"- {{type: foreach, name: a, {iteration}, steps: [{{type: pass, name: b}}]}}") == [hint]


PASS = "- {type: pass, name: b}\n"
TASK = "- {type: task, name: a, resourceArn: 'acs:fc:::functions/f'"
CASES: dict[Hint, list[tuple[str, str]]] = {
    Hint.DID_YOU_MEAN: [(f"{TASK}, retri: []}}", f"{TASK}}}"), ("- {type: pas, name: a}", "- {type: pass, name: a}")],
    Hint.DID_YOU_MEAN_ROOT: [(source("$inptu.a"), source("$input.a"))],
    Hint.IN_QUOTES: [
        ("- {type: fail, name: a, cause: 5}", "- {type: fail, name: a, cause: '5'}"),
        ("- {type: pass, name: true}", "- {type: pass, name: 'true'}"),
        ("- {type: fail, name: a, cause: *x}", "- {type: fail, name: a, cause: '*x'}"),
    ],
    Hint.WITHOUT_QUOTES: [
        ("- {type: wait, name: a, duration: '5'}", "- {type: wait, name: a, duration: 5}"),
        (f"{TASK}, timeoutSeconds: '5'}}", f"{TASK}, timeoutSeconds: 5}}"),
    ],
    Hint.BOOLEAN: [("- {type: pass, name: a, end: 'yes'}", "- {type: pass, name: a, end: true}")],
    Hint.FOR_EXAMPLE: [
        ("- {type: wait, name: a, duration: 0.5}", "- {type: wait, name: a, duration: 1}"),
        (
            "- {type: wait, name: a, timestamp: 1893456000}",
            "- {type: wait, name: a, timestamp: 2030-01-01T00:00:00Z}",
        ),
        ("- {type: pass, name: 1}", "- {type: pass, name: Charge}"),
        (f"{TASK}, pattern: 1}}", f"{TASK}, pattern: requestResponse}}"),
        (
            iterating("collection: 5, item: i"),
            iterating("collection: $.items, item: i"),
        ),
    ],
    Hint.LIST_OF_ONE: [
        (f"{TASK}, retry: [{{errors: FC.Unknown}}]}}", f"{TASK}, retry: [{{errors: [FC.Unknown]}}]}}"),
    ],
    Hint.BRACKETS_AROUND: [
        (
            "- {type: pass, name: a, inputMappings: {target: a, source: 1}}",
            "- {type: pass, name: a, inputMappings: [{target: a, source: 1}]}",
        )
    ],
    Hint.LEAVE_OUT: [
        ("- {type: pass, name: a, end: }", "- {type: pass, name: a}"),
        (f"{TASK}, retry: []}}", f"{TASK}}}"),
    ],
    Hint.BELONGS_TO: [("- {type: pass, name: a, goto: b}", "- {type: pass, name: a}")],
    Hint.NUMBER_IN_QUOTES: [("- {type: fail, name: a, cause: .inf}", "- {type: fail, name: a, cause: '.inf'}")],
    Hint.INSTANT: [
        ("- {type: wait, name: a, timestamp: soon}", "- {type: wait, name: a, timestamp: 2030-01-01T00:00:00Z}")
    ],
    Hint.THROUGH_INPUT: [
        (
            "- {type: wait, name: a, duration: $input.order.delay}",
            "- {type: wait, name: a, duration: $.delay, inputMappings: [{target: delay, source: $input.order.delay}]}",
        )
    ],
    Hint.WHOLE_SOURCE: [(source("a $input.b"), source("$input.b"))],
    Hint.SELECT_FROM_INPUT: [
        (
            "- {type: task, name: a, resourceArn: 'acs:fnf:::flow/f', serviceParams: {Input: $input.a}}",
            "- {type: task, name: a, resourceArn: 'acs:fnf:::flow/f', serviceParams: {Input: $.a}}",
        )
    ],
    Hint.PLAIN_KEY: [
        (
            iterating("collection: $.c, item: $.i"),
            iterating("collection: $.c, item: i"),
        )
    ],
    Hint.CONSTANT: [
        ("- {type: fail, name: a, cause: $.Cause}", "- {type: fail, name: a, cause: Cause}"),
    ],
    Hint.STEP_NAME: [("- {type: pass, name: a b}", "- {type: pass, name: a_b}")],
    Hint.STEP_TYPES: [("- {type: xyzzy, name: a}", "- {type: pass, name: a}")],
    Hint.ANOTHER_LIST: [
        (
            "- {type: choice, name: a, default: {steps: [{type: choice, name: c, default: {goto: b}}]}}\n" + PASS,
            "- {type: choice, name: a, default: {goto: b, steps: [{type: pass, name: c}]}}\n" + PASS,
        )
    ],
    Hint.ADD_DEFAULT: [
        (
            "- {type: choice, name: a, choices: [{condition: $.a, goto: b}]}\n" + PASS,
            "- {type: choice, name: a, choices: [{condition: $.a, goto: b}], default: {goto: b}}\n" + PASS,
        )
    ],
    Hint.PAUSE_OR_EXIT: [
        (
            "- {type: pass, name: a}\n- {type: choice, name: c, default: {goto: a}}",
            "- {type: wait, name: a, duration: 1}\n- {type: choice, name: c, default: {goto: a}}",
        )
    ],
    Hint.COLLECTED: [
        (
            "- {type: parallel, name: a, branches: [{steps: [{type: pass, name: c,"
            " outputMappings: [{target: x, source: 1}]}]}]}\n"
            "- {type: pass, name: b, inputMappings: [{target: x, source: $local.x}]}\n",
            "- {type: parallel, name: a, branches: [{steps: [{type: pass, name: c,"
            " outputMappings: [{target: x, source: 1}]}]}], outputMappings: [{target: x, source: '$local[0].x'}]}\n"
            "- {type: pass, name: b, inputMappings: [{target: x, source: $local.x}]}\n",
        )
    ],
    Hint.VERSION: [("version: v2\ntype: flow\nsteps:\n" + PASS, HEADER + PASS)],
    Hint.OLDER_DIALECT: [("Type: StateMachine\nSpecVersion: v1\n", HEADER + PASS)],
    Hint.PATTERNS: [(f"{TASK}, pattern: xyzzy}}", f"{TASK}, pattern: requestResponse}}")],
    Hint.OFFERED_PATTERNS: [
        (
            "- {type: task, name: a, resourceArn: 'acs:mns:::/queues/q/messages', pattern: sync,"
            " serviceParams: {MessageBody: $}}",
            "- {type: task, name: a, resourceArn: 'acs:mns:::/queues/q/messages', pattern: requestResponse,"
            " serviceParams: {MessageBody: $}}",
        )
    ],
    Hint.CALLBACK_ONLY: [
        (
            f"{TASK}, inputMappings: [{{target: t, source: $context.task.token}}]}}",
            f"{TASK}, inputMappings: [{{target: t, source: $context.task.token}}], pattern: waitForCallback}}",
        )
    ],
    Hint.FUNCTION_INPUT: [
        (f"{TASK}, serviceParams: {{n: 1}}}}", f"{TASK}, inputMappings: [{{target: n, source: 1}}]}}")
    ],
    Hint.FLOW_INPUT: [(calling("fnf:::flow/f", "order: $"), calling("fnf:::flow/f", "Input: $"))],
    Hint.SENT_BODY: [
        (
            calling("mns:::/queues/q/messages", "MessageBody: a, n: 1"),
            calling("mns:::/queues/q/messages", "MessageBody: {n: 1}"),
        )
    ],
    Hint.PUBLISHED_BODY: [
        (
            calling("mns:::/topics/t/messages", "MessageBody: a, n: 1"),
            calling("mns:::/topics/t/messages", "MessageBody: {n: 1}"),
        )
    ],
    Hint.FORMS: [
        (calling("fc:::function/f"), calling("fc:::services/s/functions/f")),
        (calling("fnf:::flows/f"), calling("fnf:::flow/f")),
        (calling("oss:::b"), calling("fc:::services/s/functions/f")),
        ("- {type: task, name: a, resourceArn: f}", calling("fc:::services/s/functions/f")),
        (
            calling("mns:::queues/q/messages", "MessageBody: a"),
            calling("mns:::/queues/q/messages", "MessageBody: a"),
        ),
    ],
    Hint.NO_OWNER: [(calling("fc:eu west:1:functions/f"), calling("fc:::functions/f"))],
    Hint.NO_BRACES: [
        (
            calling("fc:{region}:{account}:services/{fc-service}/functions/{fc-function}"),
            calling("fc:::services/fc-service/functions/fc-function"),
        )
    ],
    Hint.QUEUE_OR_TOPIC_NAME: [
        (
            calling("mns:::/queues/my_queue/messages", "MessageBody: a"),
            calling("mns:::/queues/my-queue/messages", "MessageBody: a"),
        )
    ],
    Hint.REF: [
        (
            "- {type: task, name: a, resourceArn: !Ref f}",
            "- {type: task, name: a, resourceArn: !Ref service/function}",
        )
    ],
    Hint.REF_ELSEWHERE: [
        (source("!Ref s/f"), source("acs:fc:::services/s/functions/f")),
    ],
    Hint.MERGE_KEY: [("- {type: pass, name: a, <<: {end: true}}", "- {type: pass, name: a, end: true}")],
    Hint.TABS: [("- type: pass\n\tname: a\n", "- type: pass\n  name: a\n")],
    Hint.QUOTE: [
        (
            "- type: fail\n  name: a\n  cause: it failed: badly\n",
            "- type: fail\n  name: a\n  cause: 'it failed: badly'\n",
        ),
        ("- {type: fail, name: a, cause: @x}\n", "- {type: fail, name: a, cause: '@x'}\n"),
    ],
    Hint.QUOTE_BRACKETS: [
        (source("$local[*].y"), source("'$local[*].y'")),
        (source("$local[0]"), source("'$local[0]'")),
        (
            iterating("collection: $.a[0].b, item: i"),
            iterating("collection: '$.a[0].b', item: i"),
        ),
        (
            "- {type: choice, name: a, choices: [{condition: $.a[0] == 1, goto: b}], default: {goto: b}}\n" + PASS,
            "- {type: choice, name: a, choices: [{condition: '$.a[0] == 1', goto: b}], default: {goto: b}}\n" + PASS,
        ),
    ],
    Hint.OWN_LINE: [
        ("version: v1 type: flow\nsteps:\n" + PASS, HEADER + PASS),
        ("- type: pass name: a\n", "- type: pass\n  name: a\n"),
    ],
    Hint.INDENT: [
        (
            "  - type: pass\n    name: a\n   - type: pass\n     name: b\n",
            "  - type: pass\n    name: a\n  - type: pass\n    name: b\n",
        ),
        ("- type: pass\n  name: a\n      end: true\n", "- type: pass\n  name: a\n  end: true\n"),
        ("- type: pass\n  name: a\n end: true\n", "- type: pass\n  name: a\n  end: true\n"),
    ],
    Hint.NO_INDENT: [
        ("version: v1\n type: flow\nsteps:\n" + PASS, HEADER + PASS),
        ("  version: v1\ntype: flow\nsteps:\n" + PASS, HEADER + PASS),
    ],
    Hint.BLANK_AFTER_COLON: [("version:v1\ntype: flow\nsteps:\n" + PASS, HEADER + PASS)],
    Hint.LIST_BELOW: [("version: v1\ntype: flow\nsteps: - {type: pass, name: a}\n", HEADER + PASS)],
    Hint.NOT_CLOSED: [
        ("- {type: fail, name: a, cause: x\n", "- {type: fail, name: a, cause: x}\n"),
        ('- {type: fail, name: a, cause: "x}\n', '- {type: fail, name: a, cause: "x"}\n'),
        ("- {type: pass, name: a\n- {type: pass, name: b}\n", "- {type: pass, name: a}\n- {type: pass, name: b}\n"),
    ],
    Hint.NOT_OPENED: [("- {type: pass, name: a}}\n", "- {type: pass, name: a}\n")],
}
"""For each hint definitions, or their steps, that show it, each with itself after the hint was followed."""


@pytest.mark.parametrize(
    ("hint", "text", "followed"), [(hint, *case) for hint in Hint for case in CASES[hint]], ids=shortened
)
def test_following_a_hint_leaves_one_finding_fewer(hint: Hint, text: str, followed: str) -> None:
    before, after = (diagnostics_of(whole(each), allow_ref_tags=True) for each in (text, followed))
    assert [found for found in before if found.hint and re.fullmatch(pattern_of(hint), found.hint)]
    assert len(after) == len(before) - 1


def test_no_module_of_the_language_writes_hints_of_its_own() -> None:
    package = Path(flowserver.language.__file__).parent
    assert [place for file in package.glob("*.py") for place in own_hints(file)] == []


def own_hints(file: Path) -> Iterator[str]:
    """Texts that are written where a hint is expected, as `file:line`."""
    for node in ast.walk(ast.parse(file.read_text("utf-8"))):
        match node:
            case ast.Call(func=ast.Attribute(attr="error" | "warning"), args=[_, _, _, hint]):
                found: ast.AST = hint
            case ast.Call(func=ast.Name(id="ResourceError"), args=[_, _, hint]):
                found = hint
            case ast.Assign(targets=[ast.Name(id="hint")], value=hint):
                found = hint
            case ast.FunctionDef(name=name) if name.endswith("_hint"):
                found = ast.Module([each for each in ast.walk(node) if isinstance(each, ast.Return)], [])
            case _:
                continue
        made = {id(part) for each in ast.walk(found) if isinstance(each, ast.Call) for part in ast.walk(each)}
        for each in ast.walk(found):
            if isinstance(each, (ast.Constant, ast.JoinedStr)) and id(each) not in made and text_of(each):
                yield f"{file.name}:{getattr(each, 'lineno', 0)}"


def text_of(node: ast.Constant | ast.JoinedStr) -> bool:
    return isinstance(node, ast.JoinedStr) or isinstance(node.value, str)
