"""What finds the bugs that people make: `prove`, `test` and `sim` with their defaults, as the bugs' comments say."""

from statistics import median

import pytest

from flowserver.analysis.proving import prove
from flowserver.analysis.rules import RULES
from tests.analysis.corpus import BEHAVIOURAL, CORRECT, LIMITS, SEEDED, Entry, entries, examine

ELSEWHERE = {"passes-limit", "step-fails-on-path", "unused-ignore"}
"""Rules whose bugs are too long for a file, or about comments; test_proving.py has them."""

WARNINGS = {
    ("async-video", "compensation-skipped"): "true, but the failed execution says enough when `Publish` fails",
    ("books-and-pages", "may-pass-limit"): "true of books with hundreds of pages each; these are brochures",
    ("nightly-report", "may-pass-limit"): "true of more than 8,333 shops; there are not so many",
    ("order-queue", "compensation-skipped"): "true, but the failed execution says enough when `TellSuccess` fails",
    ("paging", "loop-without-pause"): "the listing ends, because its pages do; the flow's time-out bounds it as well",
}
"""What the tools say of flows that are right, and why these stay as they are."""

SHARE = 0.9
MEDIAN_MS_MAX = 1_000
"""Far above what it takes, for a machine that is busy. `python -m tests.analysis corpus` measures."""

SEEDED_BUGS, BEHAVIOURAL_BUGS = entries(SEEDED), entries(BEHAVIOURAL)


@pytest.mark.parametrize("bug", SEEDED_BUGS, ids=lambda bug: bug.name)
def test_prove_finds_the_seeded_bug(bug: Entry) -> None:
    assert bug.text.startswith("# "), "the story of the bug"
    found = [(each.span.line, each.id) for each in prove(bug.text, LIMITS).findings]
    assert found == bug.marks() != []


def test_the_behavioural_bugs_are_found_by_what_their_comments_say() -> None:
    times = []
    for bug in BEHAVIOURAL_BUGS:
        assert bug.text.startswith("# "), bug.name
        found = examine(bug)
        assert list(dict.fromkeys(found.rules)) == bug.marks(), bug.name
        assert bool(found.failed_tests) == ("test" in bug.tools), bug.name
        assert sorted(set(found.properties)) == bug.said("sim"), bug.name
        assert bool(bug.tools) != bool(bug.said("nothing")), bug.name
        times.append(found.milliseconds)
    assert median(times) < MEDIAN_MS_MAX


def test_nine_in_ten_bugs_are_found() -> None:
    bugs = [*SEEDED_BUGS, *BEHAVIOURAL_BUGS]
    assert len(SEEDED_BUGS) >= 50
    assert len(BEHAVIOURAL_BUGS) >= 45
    for some in (bugs, BEHAVIOURAL_BUGS):
        assert sum(bool(bug.tools) for bug in some) >= SHARE * len(some)


def test_flows_that_are_right_have_no_errors_and_few_warnings() -> None:
    flows = entries(CORRECT)
    assert len(flows) >= 20
    warnings, times = set(), []
    for flow in flows:
        assert flow.text.startswith("# "), "what it does"
        found = examine(flow)
        assert flow.test_file is not None, flow.name
        assert (found.failed_tests, found.errors) == ([], []), flow.name
        warnings |= {(flow.name, each) for each in found.warnings}
        times.append(found.milliseconds)
    assert warnings == set(WARNINGS)
    assert median(times) < MEDIAN_MS_MAX


def test_every_rule_has_a_bug() -> None:
    marked = {rule for bug in (*SEEDED_BUGS, *BEHAVIOURAL_BUGS) for _, rule in bug.marks("!")}
    assert marked >= set(RULES) - ELSEWHERE
