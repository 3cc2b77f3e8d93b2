"""The rules of `flowserver prove`: what each finds, and why a finding is true.

A rule whose findings hold for every execution that gets to the place is an error; a rule that judges by what people
usually mean is a warning. docs/reference/rules.md is made from this table.
"""

from dataclasses import dataclass
from typing import Final

from flowserver.language.diagnostics import DIAGNOSTICS, Diagnostic, Severity


@dataclass(frozen=True, slots=True)
class Rule:
    """One rule; `why` is the argument that its findings are true."""

    severity: Severity
    finds: str
    why: str


def _sound(finds: str, why: str) -> Rule:
    return Rule(Severity.ERROR, finds, why)


def _doubt(finds: str, why: str) -> Rule:
    return Rule(Severity.WARNING, finds, why)


RULES: Final[dict[str, Rule]] = {
    "always-missing": _sound(
        "A mapping or a condition reads something that no execution has.",
        "The keys of `$local`, `$input` and `$context` follow from the mappings before the step, on every way to it. "
        "Where a function's answer or the execution's input could have the key, nothing is said.",
    ),
    "attempts-outlive-flow": _doubt(
        "All attempts of a task, each as long as its time-out, and the pauses between them take longer than the flow "
        "may.",
        "Attempts × `timeoutSeconds` + pauses ≥ the flow's `timeoutSeconds`; but attempts may be shorter.",
    ),
    "callback-without-timeout": _doubt(
        "A task waits for a callback without a time-out, and so does the flow.",
        "Without `timeoutSeconds` it waits until the execution ends, a year. It may be what you want.",
    ),
    "catch-never-matches": _sound(
        "A catch rule names only errors that earlier rules name.",
        "The first rule that names an error is used, and `FnF.ALL` names all.",
    ),
    "compensation-skipped": _doubt(
        "A task has no catch for all errors, although an earlier one has steps to undo its work, or although it runs "
        "between an error and a step that undoes work by its name.",
        "An error that nothing catches ends the execution, so no further step runs. The earlier task's work may need "
        "no undoing.",
    ),
    "constant-id": _doubt(
        "An ExecutionName or a StatefulAsyncInvocationID is the same in each execution, or each iteration of a loop.",
        "Such an id can be used once: the second execution's step fails, as does a retry, and while the first one runs "
        "a further start of it starts nothing. For a flow that runs once it is right.",
    ),
    "doubtful-error-name": _doubt(
        "`retry` or `catch` names an error that the server does not make, but that is near to one, or that an action "
        "cannot fail with.",
        "Names match exactly, and the errors of an action begin with its service. A function can raise an error of any "
        "name, though.",
    ),
    "loop-without-pause": _doubt(
        "A loop makes calls as fast as they are answered, and no number bounds it.",
        "A cycle of steps without a wait, and without an exit that compares by `<`, `<=`, `>` or `>=`. A function may "
        "end the loop.",
    ),
    "loop-changes-nothing": _sound(
        "An option leads back to its choice, and nothing on the way changes what the choice reads.",
        "The choice takes the same option again and again, until the time or the events of the execution are used up: "
        "only waits and pass steps without outputMappings are between.",
    ),
    "missing-on-path": _doubt(
        "A step reads a key that an earlier step makes only on other ways.",
        "The path is one on which no step puts the key out. The conditions on it may never hold together.",
    ),
    "partial-retry": _doubt(
        "`retry` lists some of the transient errors of a function's call, and not others.",
        "A busy service, a broken connection and a failing server have different names, and which one a call fails "
        "with is chance. Errors that an entry of `catch` names, or a policy with `maxAttempts: 0`, are left out on "
        "purpose.",
    ),
    "passes-limit": _sound(
        "The constants of a step's mappings are more than a limit allows, so each execution that builds them fails.",
        "Constants count as data of the step, and here they alone are more. Those of outputMappings and errorMappings "
        "count together with those of inputMappings.",
    ),
    "may-pass-limit": _doubt(
        "The definition can pass a limit with data that is allowed.",
        "Events, open lists or calls are counted for the longest way and the largest collection; most executions have "
        "less.",
    ),
    "output-of-start": _doubt(
        "A step reads the `Output` of a sub-flow that it has only started.",
        "Without `pattern: sync` the step ends when the sub-flow has started, and so its `Output` is an empty text. To "
        "pass that on is rarely meant.",
    ),
    "retry-by-goto": _doubt(
        "After an error that leaves open whether the call did its work, a catch leads back to its task.",
        "The task is entered again only after an error, as by a retry. But the call of a step that is entered again "
        "has a new idempotency key, so its work may be done twice. That does no harm to work that only reads.",
    ),
    "retry-never-applies": _sound(
        "A retry policy names only errors that earlier policies name.",
        "The first policy that names an error is used, even when its attempts are used up.",
    ),
    "retry-outlives-flow": _doubt(
        "The pauses of a retry policy alone take longer than the flow may.",
        "The pauses add up to the flow's `timeoutSeconds` or more, so the last attempts are never made. To retry until "
        "the time is up may be what you want.",
    ),
    "retry-without-pause": _doubt(
        "A policy retries many times without a pause.",
        "A service that fails because it is busy gets even more calls. The limit is 10 retries.",
    ),
    "root-in-path": _doubt(
        "A path begins with `$.input`, `$.local` or `$.context`, where `$` is the step's input.",
        "The step's input would need a key of that name. It may have one.",
    ),
    "step-always-fails": _sound(
        "A parameter, a collection or a time can never be used, so the step fails whenever it is entered.",
        "The path finds nothing, or a value of another type, in every input that the mappings can build. No catch "
        "applies to this.",
    ),
    "step-fails-on-path": _doubt(
        "A parameter, a collection or a time is missing on one way to the step, which then fails.",
        "The path is one on which no step puts the key out. The conditions on it may never hold together.",
    ),
    "swallowed-error": _doubt(
        "A caught error leaves no trace: the flow goes on as if nothing had happened.",
        "The catch leads where success leads, or to a `succeed`, and no errorMappings keep the error's name. It may "
        "be what you want.",
    ),
    "timeout-never-fires": _sound(
        "A task may take longer than the whole flow.",
        "The task's `timeoutSeconds` is more than the flow's, and the flow begins first. Only a redrive of an "
        "execution that waits for it gives the flow more time while the task runs.",
    ),
    "token-not-passed": _doubt(
        "A task waits for a callback, but nothing that it sends holds its task token.",
        "No mapping reads `$context.task.token`. A client can still find the token in the list of waiting tasks.",
    ),
    "unbounded-loop": _doubt(
        "A loop waits between its turns, but neither a number nor a time-out bounds it.",
        "No exit compares by `<`, `<=`, `>` or `>=`, and the flow has no `timeoutSeconds`. What it waits for may "
        "always come.",
    ),
    "undo-on-success": _doubt(
        "A step that undoes work by its name also runs when nothing failed.",
        "The step before it leads to it, and some catch does, too: a `succeed` or `end: true` is often missing. Or "
        "each option of a choice to which success leads as well begins with such a step.",
    ),
    "unused-ignore": _doubt(
        "A comment `flowserver: ignore` matches no finding, names no rule or gives no reason.",
        "A comment that ignores nothing hides the next mistake.",
    ),
    "wait-outlives-flow": _sound(
        "A wait ends after the time of the flow.",
        "The waits on the shortest way to its end add up to more than the flow's `timeoutSeconds`. After a redrive "
        "an execution has the whole time again.",
    ),
}
"""Every rule by its name. Names are stable: programs match on them."""


@dataclass(frozen=True, slots=True)
class PathStep:
    """One step of a path; `note` says how it was left, or what is true there."""

    name: str
    line: int
    column: int
    note: str


@dataclass(frozen=True, slots=True)
class Finding(Diagnostic):
    """A finding of a rule, or a warning of the parser; `path` is a way through the flow that shows it."""

    path: tuple[PathStep, ...] = ()

    def __post_init__(self) -> None:
        assert self.id in RULES or self.id in DIAGNOSTICS, self.id

    @classmethod
    def of(cls, found: Diagnostic) -> "Finding":
        """A finding of the parser."""
        return cls(found.id, found.severity, found.message, found.span, found.hint, found.target)


def page_of(id: str) -> str:
    """The page that explains a kind of finding, from the folder of the project."""
    return f"docs/reference/rules.md#{id}" if id in RULES else "docs/reference/diagnostics.md"


def severity_of(rule: str) -> Severity:
    """The severity of a rule's findings."""
    return RULES[rule].severity
