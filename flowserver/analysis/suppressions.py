"""Comments that suppress a finding: `# flowserver: ignore RULE reason`.

A comment behind a line holds for that line. A comment in a line of its own holds for the next line; if a step begins
there, for the whole step.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from flowserver.analysis.rules import RULES, Finding, severity_of
from flowserver.language.diagnostics import DIAGNOSTICS, LINE_BREAK, Severity, shown
from flowserver.language.graph import Span

_COMMENT: Final = re.compile(r"(?:^|(?<=\s))#\s*flowserver:\s*ignore\b[ \t]*(?P<rule>[^\s#]*)[ \t]*(?P<reason>.*)$")


@dataclass(frozen=True, slots=True)
class Suppression:
    """One comment; it holds for the findings in these lines."""

    rule: str
    reason: str
    span: Span
    first_line: int
    last_line: int

    def covers(self, finding: Finding) -> bool:
        """Whether it suppresses the finding. Errors of the parser are never suppressed."""
        is_parse_error = finding.id in DIAGNOSTICS and finding.severity is Severity.ERROR
        return (
            self.rule == finding.id
            and bool(self.reason)
            and self.first_line <= finding.span.line <= self.last_line
            and not is_parse_error
        )


def suppressions_in(text: str, steps: Iterable[Span]) -> list[Suppression]:
    """The comments of a definition whose steps have these places."""
    ends: dict[int, int] = {}
    for step in steps:
        ends[step.line] = max(ends.get(step.line, 0), step.end_line)
    lines = LINE_BREAK.split(text.removeprefix("\ufeff"))
    following = _next_lines(lines)
    found = []
    for number, line in enumerate(lines, start=1):
        comment = _COMMENT.search(line)
        if comment is None:
            continue
        first = last = number
        if not line[: comment.start()].strip():
            first = following[number]
            last = ends.get(first, first)
        span = Span(number, comment.start() + 1, number, len(line) + 1)
        found.append(Suppression(comment["rule"], comment["reason"].strip(), span, first, last))
    return found


def _next_lines(lines: list[str]) -> list[int]:
    """After each line, counted from 1, the next line that is neither empty nor a comment."""
    following = [len(lines) + 1] * (len(lines) + 1)
    for number in range(len(lines) - 1, -1, -1):
        is_passed_over = not lines[number].strip() or lines[number].strip().startswith("#")
        following[number] = following[number + 1] if is_passed_over else number + 1
    return following


def without_suppressed(findings: Iterable[Finding], comments: list[Suppression]) -> list[Finding]:
    """The findings that no comment suppresses, and one for each comment that is not used."""
    by_rule: dict[str, list[Suppression]] = {}
    for comment in comments:
        by_rule.setdefault(comment.rule, []).append(comment)
    used: set[Suppression] = set()
    told: list[Finding] = []
    for finding in findings:
        covering = [comment for comment in by_rule.get(finding.id, ()) if comment.covers(finding)]
        used.update(covering)
        if not covering:
            told.append(finding)
    told.extend(_unused(comment) for comment in comments if comment not in used)
    return told


def _unused(comment: Suppression) -> Finding:
    if comment.rule not in RULES and comment.rule not in DIAGNOSTICS:
        message = f"{shown(comment.rule)} is no rule" if comment.rule else "the comment names no rule"
        hint = "write `# flowserver: ignore RULE reason`"
    elif not comment.reason:
        message, hint = "the comment gives no reason", f"write `# flowserver: ignore {comment.rule} reason`"
    else:
        message, hint = f"there is no {shown(comment.rule)} to ignore here", "remove the comment"
    return Finding("unused-ignore", severity_of("unused-ignore"), message, comment.span, hint)
