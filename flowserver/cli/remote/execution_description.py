"""One execution for people: what `describe` prints."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any, Final

from flowserver.base.step_paths import folded
from flowserver.cli.printable import json_text
from flowserver.cli.remote.error_lines import cause_text, error_text
from flowserver.cli.remote.execution_states import state_of, with_waits
from flowserver.cli.remote.output import one_line
from flowserver.cli.remote.step_lines import counted, redriven
from flowserver.cli.remote.times import shown_instant, shown_span
from flowserver.cli.tables import aligned
from flowserver.client.results import CurrentStep, Execution, Step

ERROR_CHARACTERS_MAX: Final = 80
DOCUMENT_LINES_MAX: Final = 40
"""Lines that are shown of the input and of the output."""
LINE_CHARACTERS_MAX: Final = 400
AT_MAX: Final = 20
"""Steps that are shown of those that it is at."""


def described(execution: Execution, steps: Sequence[Step], now: datetime) -> str:
    """Its state, times, error, steps and documents."""
    rows = [
        ["execution:", execution.path],
        ["status:", state_of(execution)],
        ["started:", shown_instant(execution.started_time, now)],
        ["stopped:", shown_instant(execution.stopped_time, now)],
        ["took:", shown_span(execution.started_time, execution.stopped_time, now)],
        ["redrives:", _redrives(execution, now)],
        ["version:", _version(execution)],
        ["on retries exhausted:", "wait-for-redrive" if execution.on_retries_exhausted != "fail" else ""],
        ["failed step:", execution.failed_step or ""],
        ["error:", execution.error or ""],
        ["cause:", cause_text(execution.cause or "")],
        ["parked:", execution.parked_error or ""],
    ]
    documents = [("input", execution.input), ("output", execution.output)]
    blocks = [aligned([row for row in rows if row[1]])]
    if execution.current_steps:
        blocks.append(_at(execution, execution.current_steps, now))
    if steps:
        rows = [[f"  {each.path}", _state(each), _took(each, now), _notes(each)] for each in steps]
        blocks.append(aligned([["  STEP", "STATUS", "TOOK", ""], *rows]))
    for name, document in documents:
        if document is not None:
            blocks.append(f"{name}:\n{_document(document, f'{name}: {_whole(execution)}')}")
    return "\n".join(blocks)


def _redrives(execution: Execution, now: datetime) -> str:
    count = execution.redrive_count
    return f"{count}, last {shown_instant(execution.last_redrive_time, now)}" if count else ""


def _at(execution: Execution, steps: Sequence[CurrentStep], now: datetime) -> str:
    """The steps that it is at, and how to answer those that wait for a report or a redrive."""
    aborted = folded(each.path for each in steps if each.status == "Aborted")
    others = [each for each in steps if each.status != "Aborted"]
    rows = [
        [f"  {each.path}", _doing(each), shown_instant(each.since, now), shown_instant(each.until, now)]
        for each in others[:AT_MAX]
    ]
    rows += [[f"  {path}", "aborted"] for path in aborted[: AT_MAX - len(rows)]]
    lines = [aligned([["  AT", "STATUS", "SINCE", "UNTIL"], *rows])]
    count = execution.current_step_count or len(steps)
    rest = count - len(steps) + len(others) + len(aborted) - len(rows)
    if rest > 0:
        is_sent = count <= len(steps)
        more = _whole(execution) if is_sent else f"flowserver executions history {execution.path}"
        lines.append(f"  and {rest} more: {more}")
    kinds = {each.status for each in steps}
    if "WaitingForToken" in kinds:
        lines.append(f"  Report with a token: flowserver tasks list --flow {execution.flow_name}")
    if "WaitingForRedrive" in kinds:
        lines.append(f"  Go on: flowserver executions redrive {execution.path}")
    return "\n".join(lines)


def _doing(step: CurrentStep) -> str:
    words = _words(step.status)
    if step.child is None:
        return words
    return f"{words} {step.child}" if step.status == "WaitingForSubFlow" else f"{words}, sub-flow {step.child}"


def _words(status: str) -> str:
    """`WaitingForToken` as `waiting for token`."""
    return "".join(f" {letter.lower()}" if letter.isupper() else letter for letter in status).strip()


def _whole(execution: Execution) -> str:
    """The command that shows all of it."""
    return f"flowserver executions describe {execution.path} -o json"


def _document(document: dict[str, Any], whole: str) -> str:
    """The document, or its beginning and what shows the whole."""
    lines = json_text(document, indent=2).split("\n")
    shown = [one if len(one) <= LINE_CHARACTERS_MAX else f"{one[: LINE_CHARACTERS_MAX - 1]}…" for one in lines]
    left_out = len(lines) - DOCUMENT_LINES_MAX
    if left_out > 0:
        shown[DOCUMENT_LINES_MAX:] = [f"  … {left_out} more line{'' if left_out == 1 else 's'}"]
    return "\n".join(shown if shown == lines else [*shown, f"The whole {whole}"])


def _version(execution: Execution) -> str:
    if execution.version is None:
        return ""
    return f"{execution.version} (by {execution.alias})" if execution.alias else str(execution.version)


def _state(step: Step) -> str:
    """Its status; a step outside of iterations, which has one entry that may wait, is not counted."""
    if step.waiting == step.running == 1:
        return f"{step.status}; waits for a redrive"
    return with_waits(step.status, step.waiting)


def _took(step: Step, now: datetime) -> str:
    """How long its last run took, without the time between a failure and its redrive."""
    began = step.began or step.first
    return shown_span(began, None if step.status == "Running" else step.last, now)


def _notes(step: Step) -> str:
    notes = [f"{step.attempts} {_tries(step)}"] if step.attempts > 1 and step.iterations is None else []
    if step.iterations is not None:
        notes += counted(step.iterations)
    if step.redrives:
        notes.append(redriven(step.redrives))
    if step.error and step.status != "Succeeded":
        notes.append(one_line(step.error, ERROR_CHARACTERS_MAX))
    return ", ".join(notes)


def _tries(step: Step) -> str:
    """What its attempts are called: only those of a step that was entered once are retries for certain."""
    return "calls" if "[]" in step.path or step.entered > 1 else "attempts"


def shown_error(execution: Execution) -> str:
    """The error of an execution in one line, as lists show it."""
    if execution.parked_error is not None:
        return one_line(execution.parked_error, ERROR_CHARACTERS_MAX)
    return one_line(error_text(execution.error, execution.cause), ERROR_CHARACTERS_MAX)
