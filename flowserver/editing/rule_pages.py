"""The pages of rules: why a finding is true, a flow that has it, and the same flow corrected.

A page is a Markdown file in `rules/`, with the rule's name: an argument, and two definitions. The reference page, the
command and SARIF reports are made from it.
"""

import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Final

from flowserver.analysis.rules import RULES, page_of
from flowserver.language.diagnostics import DIAGNOSTICS, Severity

FOLDER: Final = Path(__file__).parent / "rules"

_FLOW: Final = re.compile(r"```yaml\n(.*?)```\n", re.DOTALL)
_MEANINGS: Final = {
    Severity.ERROR: "Error: it holds in every execution that gets to the place.",
    Severity.WARNING: "Warning: it is probably a mistake, and may be what you want.",
}
assert set(_MEANINGS) == set(Severity)


@dataclass(frozen=True, slots=True)
class RulePage:
    """The page of one rule."""

    rule: str
    argument: str
    flawed: str
    """A definition that has this finding, and no other."""
    corrected: str
    """The same without a finding."""

    def markdown(self, mark: str = "") -> str:
        """The page without its heading; `mark` comes after the language of the definitions."""
        rule = RULES[self.rule]
        fence = f"```yaml{mark and ' '}{mark}"
        flows = (f"{fence}\n{flow}```" for flow in (self.flawed, self.corrected))
        titles = ("A flow that has it:", "The same without it:")
        parts = (part for pair in zip(titles, flows, strict=True) for part in pair)
        return "\n\n".join((f"{rule.finds} {_MEANINGS[rule.severity]}", self.argument, *parts)) + "\n"


@cache
def rule_page(rule: str) -> RulePage:
    """The page of a rule; raises KeyError for a name that is none."""
    assert RULES[rule]
    text = (FOLDER / f"{rule}.md").read_text("utf-8")
    flawed, corrected = _FLOW.findall(text)
    return RulePage(rule, text.partition("```")[0].strip(), flawed, corrected)


def explained(id: str) -> str:
    """What there is to say of a kind of finding, as Markdown; raises KeyError for a name that is none."""
    if id in RULES:
        return f"# {id}\n\n{rule_page(id).markdown()}"
    return f"# {id}\n\n{DIAGNOSTICS[id]}\n\nAll findings of `flowserver validate` are in {page_of(id)}.\n"
