"""What the seeded bugs do not show: the ways of findings, comments that suppress them, limits, large definitions."""

import sys

import pytest

from flowserver.analysis.data_flow import data_of
from flowserver.analysis.errors_and_retries import SERVER_ERRORS
from flowserver.analysis.outlook import Uncaught
from flowserver.analysis.proving import prove
from flowserver.analysis.rules import RULES, Finding
from flowserver.analysis.shapes import PARTS_MAX
from flowserver.analysis.time_and_loops import pauses_seconds
from flowserver.base.limits import Limits
from flowserver.invokers.error_names import ErrorName
from flowserver.language.diagnostics import Severity
from flowserver.language.graph import RetryPolicy
from flowserver.language.parser import parse
from flowserver.machine.messages import Failure, Success
from flowserver.machine.retry_and_catch import TASK_TIMEOUT, pause_ms
from tests.analysis.corpus import SEEDED
from tests.support.world import World

HEADER = "version: v1\ntype: flow\n"
LIMITS = Limits()
WAITS = """
  - type: task
    name: ask
    resourceArn: acs:fc:::services/t/functions/ask
    pattern: waitForCallback
    inputMappings: [{target: t, source: $context.task.token}]
"""


def found_in(text: str, limits: Limits = LIMITS) -> list[Finding]:
    return list(prove(text, limits).findings)


def ids_in(text: str) -> list[tuple[int, str]]:
    return [(each.span.line, each.id) for each in found_in(text)]


def test_a_finding_has_the_shortest_way_that_shows_it() -> None:
    text = f"""{HEADER}steps:
  - type: task
    name: charge
    resourceArn: acs:fc:::services/t/functions/charge
    outputMappings: [{{target: receipt, source: $local.id}}]
    errorMappings: [{{target: why, source: $local.error}}]
    catch: [{{errors: [Declined], goto: mail}}]
  - type: choice
    name: large
    choices: [{{condition: $.receipt > 5, goto: mail}}]
    default: {{goto: mail}}
  - type: task
    name: mail
    resourceArn: acs:fc:::services/t/functions/mail
    inputMappings: [{{target: receipt, source: $local.receipt}}]
"""
    (finding,) = found_in(text)
    assert finding.id == "missing-on-path"
    assert [(each.line, each.name, each.note) for each in finding.path] == [
        (5, "charge", "fails with Declined, which is caught"),
        (15, "mail", "reads `receipt`, which no step on this way puts out"),
    ]


def test_a_way_leads_into_nested_lists() -> None:
    text = f"""{HEADER}inputMappings: [{{target: known, source: $input.known}}]
steps:
  - type: choice
    name: known
    choices: [{{condition: $.known == true, goto: each}}]
    default: {{goto: find}}
  - {{type: pass, name: find, outputMappings: [{{target: list, source: [1]}}]}}
  - type: foreach
    name: each
    iterationMapping: {{collection: $.list, item: i}}
    steps: [{{type: task, name: do, resourceArn: 'acs:fc:::services/t/functions/do', inputMappings: [
      {{target: i, source: $input.i}}, {{target: all, source: $input.list}}]}}]
"""
    fails, missing = found_in(text)
    assert (fails.id, fails.span.line) == ("step-fails-on-path", 12)
    assert (missing.id, missing.span.line) == ("missing-on-path", 14)
    assert [each.name for each in missing.path] == ["known", "each"]
    assert missing.path[0].note == "takes the option `$.known == true`"


@pytest.mark.parametrize(
    ("above", "behind"),
    [("  # flowserver: ignore callback-without-timeout the office has time", ""),
     ("", "  # flowserver: ignore callback-without-timeout the office has time")],
)  # fmt: skip
def test_a_comment_suppresses_a_finding(above: str, behind: str) -> None:
    steps = WAITS.replace("waitForCallback", "waitForCallback" + behind)
    assert ids_in(f"{HEADER}steps:\n{above}{steps}") == []


@pytest.mark.parametrize(
    ("comment", "message"),
    [
        ("ignore callback-without-timeout", "the comment gives no reason"),
        ("ignore", "the comment names no rule"),
        ("ignore nonsense because", "`nonsense` is no rule"),
        ("ignore always-missing because", "there is no `always-missing` to ignore here"),
    ],
)
def test_a_comment_that_ignores_nothing_is_found(comment: str, message: str) -> None:
    found = found_in(f"{HEADER}steps:\n  # flowserver: {comment}{WAITS}")
    assert [each.id for each in found] == ["unused-ignore", "callback-without-timeout"]
    assert found[0].message == message
    assert (found[0].span.line, found[0].span.column) == (4, 3)


def test_errors_of_the_parser_stay_alone_and_cannot_be_ignored() -> None:
    proof = prove(f"{HEADER}steps: [{{type: pass}}]  # flowserver: ignore missing-attribute because\n", LIMITS)
    assert [each.id for each in proof.findings] == ["missing-attribute"]
    assert proof.worst_case is None


def test_constants_that_pass_a_limit() -> None:
    text = f"{HEADER}steps: [{{type: pass, name: p, outputMappings: [{{target: a, source: {'x' * 40_000}}}]}}]\n"
    assert found_in(text) == []
    (finding,) = found_in(text, Limits.of("cloud"))
    assert finding.id == "passes-limit"


def test_a_constant_that_a_later_entry_replaces_takes_no_room() -> None:
    mappings = f"[{{target: a, source: {'x' * 40_000}}}, {{target: a, source: $input.a}}]"
    text = f"{HEADER}steps: [{{type: pass, name: p, outputMappings: {mappings}}}]\n"
    assert ids_in(text) == [(3, "duplicate-target")]
    assert [each.id for each in found_in(text, Limits.of("cloud"))] == ["duplicate-target"]


@pytest.mark.parametrize(("seconds", "found"), [(30, []), (31, ["wait-outlives-flow"])])
def test_a_wait_may_end_with_the_time_of_the_flow(seconds: int, found: list[str]) -> None:
    waits = f"[{{type: wait, name: a, duration: 30}}, {{type: wait, name: b, duration: {seconds}}}]"
    assert [each.id for each in found_in(f"{HEADER}timeoutSeconds: 60\nsteps: {waits}\n")] == found


def test_a_star_that_selects_nothing_gives_an_empty_list() -> None:
    text = f"""{HEADER}steps:
  - {{type: pass, name: p, outputMappings: [{{target: a, source: [1, 2]}}]}}
  - type: foreach
    name: each
    iterationMapping: {{collection: '$.a[*].k', item: it}}
    steps: [{{type: pass, name: q}}]
  - {{type: wait, name: w, duration: '$.a[*].k'}}
"""
    assert ids_in(text) == [(7, "always-missing"), (9, "step-always-fails")]


def test_an_iteration_has_what_the_whole_path_selects() -> None:
    """`a` is missing on one way, and every other key may come from `load`; items are those of `a[*].x`, not of `a`."""
    text = f"""{HEADER}inputMappings: [{{target: kind, source: $input.kind}}]
steps:
  - type: choice
    name: which
    choices: [{{condition: $.kind == "none", goto: each}}]
    default: {{goto: load}}
  - type: task
    name: load
    resourceArn: acs:fc:::services/t/functions/load
  - type: pass
    name: make
    outputMappings: [{{target: a, source: [{{x: {{y: 1}}}}]}}]
  - type: foreach
    name: each
    iterationMapping: {{collection: "$.a[*].x", item: item}}
    steps:
      - type: pass
        name: use
        outputMappings: [{{target: z, source: $input.item.y}}]
"""
    assert ids_in(text) == [(17, "step-fails-on-path")]


def test_iterations_that_wait_for_the_join_count_as_open() -> None:
    text = f"""{HEADER}steps:
  - type: foreach
    name: shops
    iterationMapping: {{collection: $.shops, item: shop}}
    steps:
      - type: foreach
        name: orders
        iterationMapping: {{collection: $.shop.orders, item: order}}
        steps: [{{type: pass, name: p}}]
"""
    (finding,) = found_in(text)
    assert finding.message == "100 iterations of `shops` that hold more than 199 lists each pass live_scopes_max"
    worst = prove(text, LIMITS).worst_case
    assert worst is not None
    assert worst.lists == 1 + 10_000 + 100 * 10_000


def test_a_loop_that_wraps_its_data_has_an_end() -> None:
    text = f"""{HEADER}steps:
  - type: task
    name: more
    resourceArn: acs:fc:::services/t/functions/more
    inputMappings: [{{target: before, source: $local}}, {{target: n, source: $input.n}}]
    outputMappings: [{{target: before, source: $input}}, {{target: n, source: $local.n}}]
  - {{type: choice, name: again, choices: [{{condition: $.n < 5, goto: more}}], default: {{}}}}
"""
    assert found_in(text) == []
    worst = prove(text, LIMITS).worst_case
    assert worst is not None
    assert worst.calls == float("inf")


def test_data_that_holds_all_data_before_it_several_times_is_known_in_part() -> None:
    """It grows as a power of the steps: 7 keys over 7 steps would be 800,000 parts."""
    keys = ", ".join(f"{{target: k{number}, source: $input}}" for number in range(7))
    steps = "".join(f"  - {{type: pass, name: p{number}, outputMappings: [{keys}]}}\n" for number in range(7))
    flow = parse(f"{HEADER}inputMappings: [{{target: a, source: 1}}]\nsteps:\n{steps}", LIMITS).flow
    data = data_of(flow)
    assert data is not None
    last = data.lists[0].steps[6].input
    assert last.parts.keys() == {"a", *(f"k{number}" for number in range(7))}
    assert last.size <= 8 * (1 + PARTS_MAX)


def test_a_value_that_is_carried_on_is_not_copied() -> None:
    steps = "".join(f"  - {{type: pass, name: p{number}}}\n" for number in range(1, 50))
    first = "  - {type: pass, name: p0, outputMappings: [{target: a, source: {b: {c: 1}}}]}\n"
    data = data_of(parse(f"{HEADER}steps:\n{first}{steps}", LIMITS).flow)
    assert data is not None
    second, last = (data.lists[0].steps[index].local.parts["a"] for index in (1, 49))
    assert last.shape is second.shape


def test_deep_nesting_is_not_slow() -> None:
    depth = 40
    inner = "[{type: pass, name: p, outputMappings: [{target: a, source: $input}]}]"
    for level in range(depth):
        inner = f"[{{type: foreach, name: f{level}, iterationMapping: {{collection: $.a, item: a}}, steps: {inner}}}]"
    assert {each.id for each in found_in(f"{HEADER}steps: {inner}\n")} == {"may-pass-limit"}


TASK = "  - {type: task, name: s%, resourceArn: 'acs:fc:::functions/f'"
REPEATED = {
    "tasks": f"{TASK}}}\n",
    "comments": "  - {type: pass, name: s%}\n  # flowserver: ignore always-missing because\n\n",
    "loops": f"""{TASK}}}
  - {{type: choice, name: c%, choices: [{{condition: $.a == 1, goto: s%}}], default: {{goto: s0}}}}
""",
    "loops by catches": f"{TASK}, catch: [{{errors: [FnF.TaskTimeout], goto: s0}}]}}\n",
    "undo": f"""{TASK}, catch: [{{errors: [FnF.ALL], goto: u%}}]}}
{TASK.replace("s%", "u%")}, end: true}}
""",
    "undo by choices": f"""{TASK}, catch: [{{errors: [FnF.ALL], goto: c%}}]}}
{TASK.replace("s%", "t%")}}}
  - {{type: choice, name: c%, choices: [{{condition: $.a == 1, goto: undo%}}], default: {{goto: d%}}}}
{TASK.replace("s%", "undo%")}, end: true}}
  - {{type: pass, name: d%}}
""",
    "retries": f"{TASK}, retry: [{{errors: [E%], maxAttempts: 1000000}}]}}\n",
    "reads of what is missing on a way": f"""
  - {{type: choice, name: c%, choices: [{{condition: $.a == 1, goto: s%}}], default: {{}}}}
  - {{type: pass, name: p%, outputMappings: [{{target: a, source: 1}}]}}
{TASK}, inputMappings: [{{target: a, source: $local.a}}], outputMappings: []}}
""",
}
"""Steps of long definitions; % is a number."""


@pytest.mark.parametrize("kind", REPEATED)
def test_the_work_grows_no_faster_than_the_definition(kind: str) -> None:
    """Calls of functions are counted: twice as many steps take hardly more than twice as many."""

    def calls(count: int) -> int:
        counted = 0

        def count_call(_frame: object, event: str, _argument: object) -> None:
            nonlocal counted
            counted += event == "call"

        text = f"{HEADER}steps:\n" + "".join(REPEATED[kind].replace("%", str(n)) for n in range(count))
        sys.setprofile(count_call)
        try:
            proof = prove(text, LIMITS)
        finally:
            sys.setprofile(None)
        assert proof.worst_case is not None
        return counted

    assert calls(300) < 2.3 * calls(150)


@pytest.mark.parametrize(
    ("bug", "wrong", "right"),
    [
        ("undo-by-choice-skipped", "bookCar\n", "bookCar\n    catch: [{errors: [FnF.ALL], goto: isBooked}]\n"),
        ("undo-by-every-option", "default: {goto: cancelFlight}", "default: {}\n  - {type: succeed, name: booked}"),
    ],
)
def test_a_choice_that_tells_errors_from_success_is_right(bug: str, wrong: str, right: str) -> None:
    text = (SEEDED / f"{bug}.yaml").read_text("utf-8")
    assert wrong in text
    found = [each.id for each in found_in(text.replace(wrong, right))]
    assert "compensation-skipped" not in found
    assert "undo-on-success" not in found


@pytest.mark.parametrize(
    ("changed", "attributes"),
    [
        (False, ""),
        (False, ", inputMappings: [{target: n, source: $input.n}, {target: e, source: $context.execution.name}]"),
        (True, ", inputMappings: [{target: n, source: $context.step.eventId}]"),
        (True, ", inputMappings: [{target: n, source: $input.n}, {target: all, source: $context}]"),
        (True, ", outputMappings: [{target: n, source: 5}]"),
    ],
)
def test_a_choice_that_leads_back_to_itself_needs_something_new(changed: bool, attributes: str) -> None:
    """Each entry of a step has an event of its own, so its id is new."""
    text = f"""{HEADER}timeoutSeconds: 60
steps:
  - {{type: wait, name: rest, duration: 1}}
  - {{type: choice, name: c, choices: [{{condition: $.n < 5, goto: rest}}]{attributes}}}
  - {{type: pass, name: p}}
"""
    found = [each.id for each in found_in(text) if each.severity is Severity.ERROR]
    assert found == ([] if changed else ["loop-changes-nothing"])


def test_a_hint_says_what_a_branch_puts_out() -> None:
    found = found_in((SEEDED / "branch-by-wrong-position.yaml").read_text("utf-8"))
    assert [each.hint for each in found] == ["`$local[0]` has `count`", "there are 2 branches, counted from 0"]


def test_the_place_of_a_doubtful_error_name_is_that_of_the_name() -> None:
    text = f"""{HEADER}steps:
  - type: task
    name: charge
    resourceArn: acs:fc:::functions/charge
    retry:
      - errors:
          - FC.ResourceThrottled
          - FC.ResourceExhaust
    catch: [{{errors: [Declined, "FnF.All"], goto: p}}]
  - {{type: pass, name: p, outputMappings: [{{target: a, source: $local.b}}]}}
"""
    found = [each for each in found_in(text) if each.id == "doubtful-error-name"]
    assert [(each.span.line, each.span.column, each.span.end_column) for each in found] == [(10, 13, 31), (11, 33, 42)]


FLAGGED = f"""{HEADER}steps:
  - type: task
    name: build
    resourceArn: acs:fc:::functions/build
    outputMappings: [{{target: failed, source: false}}, {{target: url, source: $local.url}}]
    errorMappings: [{{target: failed, source: true}}]
    catch: [{{errors: [FnF.ALL], goto: clean}}]
  - {{type: task, name: clean, resourceArn: 'acs:fc:::functions/clean', outputMappings: []}}
  - {{type: choice, name: isBuilt, choices: [{{condition: $.failed == true, goto: broken}}], default: {{goto: deploy}}}}
  - {{type: fail, name: broken}}
  - type: task
    name: deploy
    resourceArn: acs:fc:::functions/deploy
    inputMappings: [{{target: url, source: $local.url}}]
"""


@pytest.mark.parametrize(
    ("old", "new", "ids"),
    [
        ("", "", []),
        ("$.failed == true", "'!($.failed == false) || $.failed == true && $.other'", []),
        (
            "== true, goto: broken}], default: {goto: deploy}",
            "!= true, goto: deploy}], default: {goto: broken}",
            [],
        ),
        (
            "isBuilt, choices: [{condition: $.failed == true",
            "isBuilt, inputMappings: [{target: f, source: $local.failed}], choices: [{condition: $.f",
            [],
        ),
        ("$.failed == true", "$.failed == 1", ["missing-on-path"]),
        ("$.failed == true", "$.failed == true && $.sure", ["missing-on-path"]),
        ("source: true", "source: $local.error", ["missing-on-path"]),
        ("clean', outputMappings: []", "clean'", []),
        (
            "clean', outputMappings: []",
            "clean', outputMappings: [{target: failed, source: $local.failed}]",
            ["missing-on-path"],
        ),
        (
            "clean', outputMappings: []",
            "clean', inputMappings: [{target: f, source: $local.failed}], "
            "outputMappings: [{target: failed, source: $input.f}]",
            [],
        ),
    ],
)
def test_a_way_that_constants_exclude_shows_nothing(old: str, new: str, ids: list[str]) -> None:
    """A flag says whether the build failed. The answer of a function may have the key; so may what it puts out."""
    assert old in FLAGGED
    found = [each.id for each in found_in(FLAGGED.replace(old, new)) if each.id != "choice-without-default"]
    assert found == ids


def test_with_too_many_constants_all_ways_count() -> None:
    flags = "".join(
        f"""  - {{type: choice, name: c{number}, choices: [{{condition: $.a{number}, goto: d{number}}}], default: {{}}}}
  - {{type: pass, name: p{number}, outputMappings: [{{target: f{number}, source: {number}}}]}}
  - {{type: choice, name: d{number}, choices: [{{condition: $.f{number} == 99, goto: build}}], default: {{}}}}
"""
        for number in range(12)
    )
    assert found_in(FLAGGED) == []
    assert "missing-on-path" in {each.id for each in found_in(FLAGGED.replace("steps:\n", f"steps:\n{flags}", 1))}


def test_of_a_long_way_the_begin_and_the_end_are_shown() -> None:
    passes = "".join(f"  - {{type: pass, name: p{number}}}\n" for number in range(100))
    text = f"""{HEADER}steps:
  - {{type: choice, name: c, choices: [{{condition: $.z == 1, goto: p0}}], default: {{}}}}
  - {{type: pass, name: make, outputMappings: [{{target: a, source: 1}}]}}
{passes}{TASK.replace("%", "1")}, inputMappings: [{{target: a, source: $local.a}}]}}
"""
    (found,) = found_in(text)
    assert (found.id, len(found.path)) == ("missing-on-path", 31)
    assert [step.name for step in found.path if "71 more steps" in step.note] == ["p13"]
    assert [step.name for step in found.path[-3:]] == ["p98", "p99", "s1"]


def test_a_hundred_findings_are_shown() -> None:
    step = "  - {{type: pass, name: p{0}, outputMappings: [{{target: a, source: $local.a}}]}}\n"
    found = found_in(f"{HEADER}steps:\n" + "".join(map(step.format, range(150))))
    assert (len(found), found[-1].message) == (101, "there are 50 more findings")


@pytest.mark.parametrize("retries", [0, 1, 3, 999, 1_000, 1_001, 5_000, 30_000])
@pytest.mark.parametrize(
    ("interval", "multiplier", "longest"),
    [(0, 2.0, 10), (1, 1.0, 60), (1, 2.0, 86_400), (5, 1.001, 86_400), (3, 7.5, 2)],
)
def test_pauses_add_up(interval: int, multiplier: float, longest: int, retries: int) -> None:
    policy = RetryPolicy(frozenset({"E"}), interval, longest, retries, multiplier)
    one_by_one = sum(pause_ms(policy, number) for number in range(1, retries + 1)) / 1000
    found = pauses_seconds(policy, retries)
    assert found == pytest.approx(one_by_one, rel=1e-6)
    if retries <= 1_000:
        assert found == one_by_one


def test_retries_can_use_up_the_events_of_an_execution() -> None:
    text = f"""{HEADER}steps:
  - type: task
    name: poll
    resourceArn: acs:fc:::services/t/functions/poll
    retry: [{{errors: [NotYet], intervalSeconds: 1, multiplier: 1, maxAttempts: 100000}}]
"""
    (finding,) = found_in(text)
    assert (finding.id, finding.span.line) == ("may-pass-limit", 7)
    assert finding.message == "more than 66666 retries pass events_max; 100000 are allowed"
    assert found_in(text.replace("multiplier: 1,", "")) == []  # a year is over before
    assert found_in(text.replace("100000", "60000")) == []


def test_constants_of_input_and_output_count_together() -> None:
    half = "x" * 20_000
    given = f"inputMappings: [{{target: a, source: {half}}}]"
    text = f"{HEADER}steps: [{{type: pass, name: p, {given}, outputMappings: []}}]\n"
    assert found_in(text, Limits.of("cloud")) == []
    (finding,) = found_in(text.replace("[]", f"[{{target: b, source: {half}}}]"), Limits.of("cloud"))
    assert (finding.id, finding.message[:30]) == ("passes-limit", "the constants are 40016 bytes,")


@pytest.mark.parametrize(("other", "ids"), [("nightly", ["constant-id"]), ("weekly", [])])
def test_an_id_that_is_one_of_several_constants_differs_between_executions(other: str, ids: list[str]) -> None:
    text = f"""{HEADER}steps:
  - type: choice
    name: which
    choices: [{{condition: $.full, goto: one}}]
    default: {{goto: other}}
  - {{type: pass, name: other, outputMappings: [{{target: id, source: {other}}}]}}
  - type: choice
    name: on
    default: {{goto: start}}
  - {{type: pass, name: one, outputMappings: [{{target: id, source: nightly}}]}}
  - type: task
    name: start
    resourceArn: acs:fnf:::flow/report
    inputMappings: [{{target: id, source: $local.id}}]
    serviceParams: {{ExecutionName: $.id}}
"""
    assert [each.id for each in found_in(text)] == ids


def test_constants_count_where_they_are_built() -> None:
    """What a step puts out counts only if it gets there; after an error, its errorMappings do instead."""
    large = f"[{{target: a, source: {'x' * 40_000}}}]"
    task = f"{TASK.replace('%', '1')}, catch: [{{errors: [E], goto: p}}]"
    rest = ", end: true}\n  - {type: pass, name: p}\n"
    for attribute, effect in (("outputMappings", "never succeeds"), ("errorMappings", "fails after each error")):
        (finding,) = found_in(f"{HEADER}steps:\n{task}, {attribute}: {large}{rest}", Limits.of("cloud"))
        assert (finding.id, finding.message.endswith(effect)) == ("passes-limit", True)
    never = "choices: [{condition: true, steps: [{type: fail, name: f}]}]"
    choice = f"  - {{type: choice, name: c, {never}, outputMappings: {large}}}\n"
    assert [each.id for each in found_in(f"{HEADER}steps:\n{choice}", Limits.of("cloud"))] == []


def test_tasks_whose_errors_end_the_flow_are_named() -> None:
    text = f"""{HEADER}steps:
  - type: task
    name: all
    resourceArn: acs:fc:::functions/f
    errorMappings: [{{target: why, source: $local.error}}]
    catch: [{{errors: [FnF.ALL], goto: none}}]
  - type: task
    name: some
    resourceArn: acs:fc:::functions/f
    errorMappings: [{{target: why, source: $local.error}}]
    catch: [{{errors: [B, A], goto: none}}]
    end: true
  - {{type: task, name: none, resourceArn: 'acs:fc:::functions/f'}}
"""
    assert prove(text, LIMITS).uncaught == (Uncaught("some", 10, ("A", "B")), Uncaught("none", 15, ()))


def test_the_known_errors_are_those_of_the_server() -> None:
    made = {str(row) for row in ErrorName if "{" not in str(row)}
    assert made <= set(SERVER_ERRORS)


def test_rules_say_why_they_are_true() -> None:
    assert [name for name, rule in RULES.items() if not (rule.finds.endswith(".") and rule.why.endswith("."))] == []


def test_only_a_redrive_of_a_waiting_execution_lets_a_longer_time_out_fire() -> None:
    """The page of `timeout-never-fires` says so."""
    text = f"""{HEADER}timeoutSeconds: 60
steps:
  - type: parallel
    name: both
    branches:
      - steps: [{{type: task, name: slow, resourceArn: 'acs:fc:::services/t/functions/slow', timeoutSeconds: 100}}]
      - steps: [{{type: task, name: bad, resourceArn: 'acs:fc:::services/t/functions/bad'}}]
"""
    assert [id for _, id in ids_in(text)] == ["timeout-never-fires"]
    world = World(parse(text, LIMITS).flow, waits_for_redrive=True)
    world.start()
    world.now_ms += 50_000
    world.reply(Failure("Broken", ""), next(call for call in world.calls if call.step_name == "bad"))
    world.redrive()
    world.reply(Success({}), world.calls[-1])
    world.wake()
    assert world.execution.error == TASK_TIMEOUT


@pytest.mark.parametrize(
    "steps",
    [
        pytest.param(
            "  - type: parallel\n    name: both\n    branches:\n"
            "      - steps: [{type: wait, name: a, duration: 40}]\n"
            "      - steps: [{type: wait, name: b, duration: 40}]\n",
            id="branches run beside each other",
        ),
        pytest.param(
            "  - type: foreach\n    name: each\n    iterationMapping: {collection: $.items, item: item}\n"
            "    steps: [{type: wait, name: a, duration: 59}]\n  - {type: wait, name: b, duration: 59}\n",
            id="a list may be empty",
        ),
        pytest.param(
            "  - {type: wait, name: a, duration: $.seconds}\n  - {type: wait, name: b, duration: 59}\n",
            id="a computed wait may be over at once",
        ),
        pytest.param(
            "  - {type: wait, name: a, timestamp: $.at}\n  - {type: wait, name: b, duration: 59}\n",
            id="an instant may be past",
        ),
    ],
)
def test_waits_that_may_end_in_time_outlive_no_flow(steps: str) -> None:
    text = f"{HEADER}timeoutSeconds: 60\nsteps:\n{steps}"
    assert "wait-outlives-flow" not in [name for _, name in ids_in(text)]
    longer = text.replace("name: b, duration: 40", "name: b, duration: 61").replace("duration: 59", "duration: 61")
    assert "wait-outlives-flow" in [name for _, name in ids_in(longer)]
