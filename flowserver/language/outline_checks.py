"""Rules that need the outline of every list: names are unique, gotos name siblings."""

from collections.abc import Collection, Sequence

from flowserver.language.check_cost import Work
from flowserver.language.diagnostics import Report, shown
from flowserver.language.hints import Hint
from flowserver.language.outline import ListOutline, Located


def check_names(outlines: Sequence[ListOutline], report: Report) -> None:
    """Names are unique in their list; the same name in two lists is only a warning."""
    everywhere: dict[str, Located] = {}
    for outline in outlines:
        here: dict[str, Located] = {}
        for name in outline.names:
            if name.text in here:
                line = here[name.text].span.line
                report.error("duplicate-name", name.span, f"{shown(name.text)} names the step in line {line} already")
            elif name.text in everywhere and everywhere[name.text] != name:  # the same text if it is an alias
                line = everywhere[name.text].span.line
                message = f"{shown(name.text)} also names the step in line {line}, in another list"
                report.warning("duplicate-name-elsewhere", name.span, message)
            if name.text:
                here[name.text] = name
        everywhere |= here


def check_gotos(outlines: Sequence[ListOutline], report: Report, work: Work) -> None:
    """Every goto names a step of the list that contains the goto's own step."""
    everywhere = {name.text: name for outline in outlines for name in outline.names}
    for outline in outlines:
        siblings = dict.fromkeys(name.text for name in outline.names if name.text)
        for goto in outline.gotos:
            if goto.text not in siblings:
                hint = _goto_hint(goto.text, siblings, everywhere, work)
                report.error("unknown-goto", goto.span, f"{shown(goto.text)} is not a step of this list", hint)


def _goto_hint(name: str, siblings: Collection[str], everywhere: dict[str, Located], work: Work) -> str | None:
    if name in everywhere:
        return Hint.ANOTHER_LIST.of(line=everywhere[name].span.line)
    return work.similar(name, siblings)
