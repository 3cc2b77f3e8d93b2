"""Diagnostics of definitions: the table of ids, the diagnostic, and its rendering as plain text.

Knows nothing of how mistakes are found. The table is the source of the reference page.
"""

import re
import unicodedata
from dataclasses import dataclass
from enum import StrEnum
from typing import Final, Literal, NamedTuple

from flowserver.base.errors import InvalidArgument
from flowserver.language.graph import Span

DIAGNOSTICS: Final[dict[str, str]] = {
    "bad-action": "An action is not written `{service}:{Api}`.",
    "bad-alias": "A YAML alias names an anchor that does not exist or that contains the alias itself.",
    "bad-character": "The text holds a character that YAML does not allow, such as NUL or half a surrogate pair.",
    "bad-condition": "A condition is not in the condition language.",
    "bad-key": "A key of a YAML mapping is itself a list or a mapping.",
    "bad-name": "A step's name is not 1-128 of letters, digits, `_`, `-`, beginning with a letter or `_`.",
    "bad-number": "A number is not finite, or has more digits than the server keeps.",
    "bad-path": "A path or a reference is not in the path language.",
    "bad-resource": "A resourceArn does not name a function, a flow, a queue or a topic.",
    "bad-value": "An attribute's value is outside the range or the set that is allowed.",
    "bad-version": "The definition's version is not one of those supported.",
    "checking-stopped": "The definition has more errors than the list shows; checking stopped.",
    "choice-without-default": "Warning: when no condition is true, this choice does nothing and the flow goes on.",
    "definition-too-large": "The definition has more bytes than the server accepts.",
    "discarded-output": "Warning: something reads what a parallel or foreach step without outputMappings discards.",
    "duplicate-key": "A key appears twice in one YAML mapping.",
    "duplicate-name": "Two steps of one list have the same name.",
    "duplicate-name-elsewhere": "Warning: steps of different lists have the same name.",
    "duplicate-target": "Warning: two entries of one mapping list have the same target; the last one wins.",
    "empty-attribute": "An attribute that may be left out is written without a value, or `retry` without a policy.",
    "empty-list": "A list that needs an entry has none.",
    "endless-loop": "Warning: this loop has no exit, and none of its steps waits.",
    "exactly-one": "Exactly one of two attributes must be given.",
    "many-documents": "The text holds more than one YAML document.",
    "merge-key": "The YAML merge key `<<` is not supported.",
    "missing-attribute": "A required attribute is missing.",
    "missing-parameter": "A parameter that the target requires is not in serviceParams.",
    "misspelt-root": "A reference begins with a word that is nearly `$input`, `$local` or `$context`.",
    "more-warnings": "Warning: the definition has more warnings than the list shows.",
    "nesting-too-deep": "The YAML nests deeper than the server accepts.",
    "newer-dialect": "The definition is written in the newer language, Type: StateMachine.",
    "no-definition": "The text holds no YAML document.",
    "no-task-token": "Warning: a mapping reads `$context.task.token` in a step that does not wait for a callback.",
    "not-yaml": "The text is neither YAML nor JSON.",
    "path-as-constant": "Warning: a text looks like a path but is a constant in this place.",
    "pattern-not-offered": "The target of the task does not offer this pattern.",
    "starts-itself": "Warning: every way through the flow starts it again, itself or through other flows.",
    "tag-not-allowed": "A YAML tag appears where none is allowed.",
    "too-many-branches": "A parallel step has more branches than the server accepts.",
    "too-many-nodes": "The YAML holds more values, aliases followed, than the server accepts.",
    "too-many-steps": "The definition has more steps than the server accepts.",
    "too-much-text": "The YAML holds more text, aliases followed, than the server accepts.",
    "unknown-attribute": "An attribute is not known in this place.",
    "unknown-flow": "Warning: the server has no flow of this name.",
    "unknown-function": "Warning: the function is not registered with the server.",
    "unknown-goto": "A goto does not name a step of its own list.",
    "unknown-parameter": "The target does not take a parameter of serviceParams.",
    "unknown-queue": "Warning: the server has no queue of this name.",
    "unknown-resource": "A flow test names a function, flow, queue or topic that no step of the flow uses.",
    "unknown-step": "A flow test names a step that the flow does not have.",
    "unknown-step-type": "A step's type is not one of those in the language.",
    "unreachable-step": "Warning: no way leads to this step.",
    "unknown-topic": "Warning: the server has no topic of this name.",
    "unsupported-action": "The action is known but not supported.",
    "unusable-flow": "The flow of a flow test cannot be read, or has errors.",
    "unusable-callee": "What a flow test wants to call really cannot be called here.",
    "unused-error-mappings": "Warning: errorMappings have no effect without a catch.",
    "wrong-type": "A value is of the wrong type.",
}
"""Every id and what it means, in one line. Ids are stable: clients may match on them."""


LENIENT: Final = frozenset({"empty-attribute", "misspelt-root", "unknown-attribute"})
"""The errors that a lenient check makes warnings: an attribute is then left out, as if it were not written, and a
misspelt reference is a constant."""


class Severity(StrEnum):
    """Errors refuse the definition; warnings do not."""

    ERROR = "error"
    WARNING = "warning"


class Target(NamedTuple):
    """Something of the server that is named but does not exist."""

    kind: Literal["flow", "function", "queue", "topic", "version", "alias"]
    name: str
    """`charge`, `shop/pay`; of a version or an alias with its flow: `etl/prod`."""


@dataclass(frozen=True, slots=True)
class Diagnostic:
    """One finding: a stable kebab-case id, one short sentence, the place, and perhaps what to do about it."""

    id: str
    severity: Severity
    message: str
    span: Span
    hint: str | None = None
    target: Target | None = None
    """What is missing, if it is something of the server."""

    def __post_init__(self) -> None:
        assert self.id in DIAGNOSTICS, self.id


SUMMARY_MAX: Final = 5
"""Errors that the message of a refusal tells; for clients that see nothing but a message."""


DIAGNOSTICS_MAX: Final = 100
"""Diagnostics of one definition. One more says that checking stopped, or how many warnings are left out."""


class CheckingStopped(Exception):
    """Checking further would cost too much or make no sense; the report says why."""


class DefinitionRejected(InvalidArgument):
    """The definition is not valid; `diagnostics` holds what was found, warnings too, in order of place.

    It has no errors where a caller has asked that warnings refuse it.
    """

    def __init__(self, diagnostics: tuple[Diagnostic, ...]) -> None:
        self.diagnostics = diagnostics
        errors = [item for item in diagnostics if item.severity is Severity.ERROR]
        super().__init__(_summary(errors or list(diagnostics)))


def _summary(errors: list[Diagnostic]) -> str:
    told = [f"line {item.span.line}, column {item.span.column}: {item.message}" for item in errors[:SUMMARY_MAX]]
    rest = len(errors) - len(told)
    if errors and errors[-1].id == "checking-stopped":
        return "; ".join(told) + f" (and more; flowserver validate shows {DIAGNOSTICS_MAX})"
    return "; ".join(told) + (f" (and {rest} more; flowserver validate shows all)" if rest else "")


class Report:
    """Collects the diagnostics of one parse, each finding once (aliases repeat them), DIAGNOSTICS_MAX at most.

    With `lenient` the errors of LENIENT are warnings.
    """

    def __init__(self, *, lenient: bool = False) -> None:
        self.lenient = lenient
        self._errors: dict[Diagnostic, None] = {}
        self._warnings: dict[Diagnostic, None] = {}
        self._left_out: set[tuple[str, int, int]] = set()
        self._is_stopped = False

    @property
    def has_errors(self) -> bool:
        """Whether there is an error among the findings."""
        return bool(self._errors)

    def error(self, id: str, span: Span, message: str, hint: str | None = None) -> None:
        """Add an error; raises CheckingStopped if there are DIAGNOSTICS_MAX others."""
        if self.lenient and id in LENIENT:
            self.warning(id, span, message, hint)
            return
        found = Diagnostic(id, Severity.ERROR, message, span, hint)
        if len(self._errors) == DIAGNOSTICS_MAX and found not in self._errors:
            self._is_stopped = True
            raise CheckingStopped
        self._errors[found] = None

    def warning(self, id: str, span: Span, message: str, hint: str | None = None) -> None:
        """Add a warning. Past DIAGNOSTICS_MAX it is only counted, since an error may still come."""
        found = Diagnostic(id, Severity.WARNING, message, span, hint)
        if len(self._warnings) == DIAGNOSTICS_MAX and found not in self._warnings:
            self._left_out.add((id, span.line, span.column))
        else:
            self._warnings[found] = None

    def diagnostics(self) -> tuple[Diagnostic, ...]:
        """The findings in order of place; errors before warnings where not all have room."""
        warnings = list(self._warnings)[: DIAGNOSTICS_MAX - len(self._errors)]
        told = sorted(
            [*self._errors, *warnings], key=lambda item: (item.span.line, item.span.column, item.severity, item.id)
        )
        left_out = len(self._warnings) - len(warnings) + len(self._left_out)
        if self._is_stopped:
            message = f"checking stopped after {DIAGNOSTICS_MAX} errors"
            told.append(Diagnostic("checking-stopped", Severity.ERROR, message, told[-1].span))
        elif left_out:
            message = f"there are {left_out} more warnings"
            told.append(Diagnostic("more-warnings", Severity.WARNING, message, told[-1].span))
        return tuple(told)


SHOWN_MAX: Final = 60
"""Longest piece of a user's text that a message repeats, in characters."""


def shown(text: str) -> str:
    """A user's text as messages quote it: cut, without control characters, in back quotes."""
    cut = text if len(text) <= SHOWN_MAX else text[: SHOWN_MAX - 1] + "…"
    return f"`{_printable(cut)}`"


def _printable(text: str) -> str:
    return "".join(character if character.isprintable() else "\N{REPLACEMENT CHARACTER}" for character in text)


LINE_BREAK = re.compile("\r\n|[\r\n\x85\u2028\u2029]")
"""What ends a line in YAML; diagnostics count lines by it."""

_WINDOW = 100  # characters of a source line that are printed; one-line JSON can be very long
_BEFORE = 60  # of these, how many stand before the caret


def render(diagnostic: Diagnostic, text: str, file_name: str) -> str:
    """The diagnostic as plain text: place, severity, id, sentence, the source line with carets, the hint.

    `text` is the text that was parsed. The result has no colours and ends without a line break.
    """
    span = diagnostic.span
    head = f"{file_name}:{span.line}:{span.column}: {diagnostic.severity}[{diagnostic.id}]: {diagnostic.message}"
    lines = [head, *excerpt(text, span)]
    if diagnostic.hint:
        lines.append(f"  hint: {diagnostic.hint}")
    return "\n".join(lines)


def excerpt(text: str, span: Span) -> list[str]:
    """The line of the place and a line with carets below its columns."""
    lines = LINE_BREAK.split(text.removeprefix("\ufeff"))
    line = lines[span.line - 1] if span.line <= len(lines) else ""  # a place can be behind the last line break
    start = span.column - 1
    end = max(start + 1, span.end_column - 1 if span.end_line == span.line else len(line))
    left = max(0, start - _BEFORE)
    right = left + _WINDOW
    cut_left, cut_right = "…" if left else "", "…" if right < len(line) else ""
    source = _printable(cut_left + line[left:right].replace("\t", " ") + cut_right)
    carets = _width(cut_left + line[left:start]) * " " + max(1, _width(line[start : min(end, right)])) * "^"
    gutter = f"{span.line:>5} | "
    return [gutter + source, " " * (len(gutter) - 2) + "| " + carets]


def _width(text: str) -> int:
    """Columns that a terminal needs for the text; East Asian wide characters take two."""
    return sum(2 if unicodedata.east_asian_width(character) in "WF" else 1 for character in text)
