"""What is said of many redrives: before they are made, and after."""

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Final

from flowserver.base.urls import SERVER_DEFAULT
from flowserver.cli.remote.output import one_line
from flowserver.cli.remote.session import Session
from flowserver.client.results import Execution

END_REPORTED: Final = "ExecutionEndReported"
"""The code of a refusal because the execution that waited for this one, such as its parent, has taken its end."""

NAMED_MAX: Final = 3
"""Flows, errors or parents that are named; others are counted."""

CHARACTERS_MAX: Final = 80
"""Of the name of an error, which any flow may choose."""


class RedriveOutcome:
    """What became of the chosen executions. If a single one was named, its refusal is an error in any case."""

    def __init__(self, session: Session, chosen: Sequence[tuple[str, str]], *, is_single: bool) -> None:
        self._session = session
        self._chosen = {"/".join(each) for each in chosen}
        self._is_single = is_single
        self._parents: dict[str, None] = {}
        self.left_out = 0
        """How many were left out because their parents have taken their ends."""

    def is_left_out(self, code: str, redrive_instead: str | None) -> bool:
        """Whether this refusal is no failure of the command; it is then counted, with the execution to redrive."""
        if self._is_single or code != END_REPORTED:
            return False
        self.left_out += 1
        if redrive_instead is not None and redrive_instead not in self._chosen:
            self._parents[redrive_instead] = None
        return True

    def summarize(self, redriven: int, refused: int, verb: str = "redriven") -> None:
        """Note how many were redriven and refused, and what was left out."""
        if self._is_single:
            return
        if self._chosen:
            self._session.note(f"{redriven} {verb}, {refused} refused.")
        if self.left_out == 1:
            said = "1 sub-flow execution was left out: its parent has taken its end"
        else:
            said = f"{self.left_out} sub-flow executions were left out: their parents have taken their ends"
        if self._parents:
            said += f"; redrive the parent{'' if len(self._parents) == 1 else 's'}: {_some(list(self._parents))}"
        if self.left_out:
            self._session.note(said if self._parents else f"{said}.")


def question_of(count: int) -> str:
    """What is asked before they are redriven."""
    return f"Redrive {count} execution{'' if count == 1 else 's'}?"


def about_redrives(found: Sequence[Execution], url: str, from_step: str | None, definition: str) -> Iterator[str]:
    """Lines that say which executions they are, and what is not as usual: at most five."""
    yield f"Flows: {_counted(Counter(each.flow_name for each in found))}"
    errors = Counter(one_line(each.error, CHARACTERS_MAX) for each in found if each.error)
    if errors:
        yield f"Errors: {_counted(errors)}"
    if from_step is not None:
        yield f"From: {from_step}"
    if definition != "same":
        yield f"Definition: {definition if definition == 'current' else f'version {definition}'}"
    if url.rstrip("/") != SERVER_DEFAULT:
        yield f"Server: {url}"


def _counted(counts: Counter[str]) -> str:
    return _some([f"{name} ({count})" for name, count in counts.most_common()])


def _some(names: Sequence[str]) -> str:
    rest = len(names) - NAMED_MAX
    return ", ".join(names[:NAMED_MAX]) + (f" and {rest} more" if rest > 0 else "")
