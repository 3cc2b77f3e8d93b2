"""Limits on definitions: the last accepted value, the first refused one, and quick answers to bombs."""

from dataclasses import replace

import pytest

from flowserver.language.graph import FailStep
from tests.language.definitions import HEADER, LIMITS, diagnostics_of, flow_of, ids_of, step_of

FLOW = HEADER + "- {type: pass, name: a}\n"


def steps(count: int) -> str:
    return HEADER + "".join(f"- {{type: pass, name: s{number}}}\n" for number in range(count))


def branches(count: int) -> str:
    branch = "{steps: [{type: pass, name: b}]}"
    return f"{HEADER}- {{type: parallel, name: p, branches: [&b {branch}{', *b' * (count - 1)}]}}\n"


def nested(levels: int) -> str:
    return f"{HEADER}- {{type: pass, name: a, outputMappings: [{{target: t, source: {'[' * levels}{']' * levels}}}]}}\n"


def test_bytes() -> None:
    text = FLOW + "# é\n"
    size = len(text.encode())
    assert ids_of(text, replace(LIMITS, definition_bytes_max=size)) == []
    assert ids_of(text, replace(LIMITS, definition_bytes_max=size - 1)) == ["definition-too-large"]


def test_steps() -> None:
    assert ids_of(steps(3), replace(LIMITS, definition_steps_max=3)) == []
    found = diagnostics_of(steps(5), replace(LIMITS, definition_steps_max=3))
    assert [(item.id, item.span.line) for item in found] == [("too-many-steps", 7)]


def test_branches() -> None:
    assert ids_of(branches(LIMITS.branches_max)) == []
    assert ids_of(branches(LIMITS.branches_max + 1)) == ["too-many-branches"]


def test_depth() -> None:
    levels_around = 5
    assert ids_of(nested(LIMITS.definition_depth_max - levels_around)) == []
    assert ids_of(nested(LIMITS.definition_depth_max - levels_around + 1)) == ["nesting-too-deep"]


def test_depth_counts_expanded_aliases() -> None:
    text = "a: &a [[[1]]]\nb: [[*a]]\n"
    assert "nesting-too-deep" not in ids_of(text, replace(LIMITS, definition_depth_max=6))
    (found,) = diagnostics_of(text, replace(LIMITS, definition_depth_max=5))
    assert (found.id, found.span.line, found.span.column) == ("nesting-too-deep", 2, 6)


def test_nodes_counts_expanded_aliases() -> None:
    text = "a: &a [1, 2]\nb: [*a, *a]\n"  # the mapping, two keys, three values, and two times three
    assert "too-many-nodes" not in ids_of(text, replace(LIMITS, definition_nodes_max=13))
    (found,) = diagnostics_of(text, replace(LIMITS, definition_nodes_max=12))
    assert (found.id, found.span.line, found.span.column) == ("too-many-nodes", 2, 9)


def test_an_error_and_its_cause_have_maximum_lengths() -> None:
    def failing(error: int, cause: int) -> str:
        return f"- {{type: fail, name: a, error: {'e' * error}, cause: {'c' * cause}}}"

    longest = step_of(failing(128, 4096))
    assert isinstance(longest, FailStep)
    assert (len(longest.error), len(longest.cause)) == (128, 4096)
    assert ids_of(HEADER + failing(129, 4097)) == ["bad-value", "bad-value"]


def test_values_at_their_limits_are_accepted() -> None:
    text = """
version: v1
type: flow
timeoutSeconds: 31536000
steps:
- {type: wait, name: a, duration: 172800}
- type: task
  name: b
  resourceArn: acs:fc:::functions/f
  timeoutSeconds: 1
  retry:
  - {errors: [A], intervalSeconds: 86400, maxIntervalSeconds: 86400, maxAttempts: 1000000, multiplier: 86400}
  - {errors: [A], intervalSeconds: 0, maxIntervalSeconds: 0, maxAttempts: 0, multiplier: 1}
"""
    assert ids_of(text) == []


BOMB = "a: &a [x, x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"{name}: &{name} [{', '.join(['*' + before] * 10)}]\n" for before, name in zip("abcdefgh", "bcdefghi", strict=True)
)


@pytest.mark.parametrize(
    ("text", "id"),
    [
        ("[" * 10_000, "nesting-too-deep"),
        ("{" * 10_000, "nesting-too-deep"),
        ("- " * 10_000, "nesting-too-deep"),
        ("? " * 10_000, "nesting-too-deep"),
        ("\n".join(" " * level + "a:" for level in range(500)), "nesting-too-deep"),
        ("x" * 10_000_000, "definition-too-large"),
        ("- a\n" * 60_000, "too-many-nodes"),
        (BOMB, "too-many-nodes"),
        (
            HEADER + "- {type: pass, name: a, outputMappings: [{target: t, source: $input" + ".a" * 9999 + "}]}",
            "bad-path",
        ),
    ],
    ids=lambda value: value[:12],
)
def test_bombs(text: str, id: str) -> None:
    assert ids_of(text) == [id]


def test_deep_flows_parse() -> None:
    depth = (LIMITS.definition_depth_max - 3) // 2
    text = "{type: pass, name: innermost}"
    for level in range(depth):
        text = f"{{type: foreach, name: f{level}, iterationMapping: {{collection: $.l, item: i}}, steps: [{text}]}}"
    assert len(flow_of(HEADER + "- " + text).lists) == depth + 1
