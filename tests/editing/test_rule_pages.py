"""The pages of rules: each flow that has the finding has this one alone, and its correction has none."""

import pytest

from flowserver.analysis.proving import prove
from flowserver.analysis.rules import RULES, page_of
from flowserver.base.limits import Limits
from flowserver.editing.rule_pages import FOLDER, rule_page
from tests.docs.pages import ROOT, anchors


def test_every_rule_has_a_page_and_no_page_is_left_over() -> None:
    assert {file.name for file in FOLDER.iterdir()} == {f"{rule}.md" for rule in RULES}


@pytest.mark.parametrize("rule", RULES)
def test_the_flow_of_a_page_has_this_finding_and_the_corrected_one_has_none(rule: str) -> None:
    page = rule_page(rule)
    assert [found.id for found in prove(page.flawed, Limits()).findings] == [rule]
    assert prove(page.corrected, Limits()).findings == ()
    assert page.argument.endswith(".")


@pytest.mark.parametrize("rule", RULES)
def test_findings_lead_to_the_section_of_their_rule(rule: str) -> None:
    file, _, anchor = page_of(rule).partition("#")
    assert anchor in anchors(ROOT / file)
