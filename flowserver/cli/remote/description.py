"""One execution for people: what `describe` prints."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any, Final

from flowserver.cli.printable import json_text
from flowserver.cli.remote.output import one_line
from flowserver.cli.remote.step_lines import counted
from flowserver.cli.remote.times import seconds_between, shown_instant, shown_seconds, shown_span
from flowserver.cli.tables import aligned
from flowserver.client.results import Execution, Step

ERROR_CHARACTERS_MAX: Final = 80


def described(execution: Execution, steps: Sequence[Step], now: datetime) -> str:
    """Its state, times, error, steps and documents."""
    rows = [
        ["execution:", execution.path],
        ["status:", execution.status],
        ["started:", shown_instant(execution.started_time, now)],
        ["stopped:", shown_instant(execution.stopped_time, now)],
        ["took:", shown_span(execution.started_time, execution.stopped_time, now)],
        ["version:", _version(execution)],
        ["failed step:", execution.failed_step or ""],
        ["error:", execution.error or ""],
        ["cause:", execution.cause or ""],
        ["parked:", execution.parked_error or ""],
    ]
    documents = [("input", execution.input), ("output", execution.output)]
    blocks = [aligned([row for row in rows if row[1]])]
    if steps:
        rows = [[f"  {each.path}", each.status, _took(each, now), _notes(each)] for each in steps]
        blocks.append(aligned([["  STEP", "STATUS", "TOOK", ""], *rows]))
    blocks += [f"{name}:\n{_document(document)}" for name, document in documents if document is not None]
    return "\n".join(blocks)


def _document(document: dict[str, Any]) -> str:
    return json_text(document, indent=2)


def _version(execution: Execution) -> str:
    if execution.version is None:
        return ""
    return f"{execution.version} (by {execution.alias})" if execution.alias else str(execution.version)


def _took(step: Step, now: datetime) -> str:
    return shown_seconds(seconds_between(step.first, None if step.status == "Running" else step.last, now))


def _notes(step: Step) -> str:
    notes = [f"{step.attempts} attempts"] if step.attempts > 1 and step.iterations is None else []
    if step.iterations is not None:
        notes += counted(step.iterations)
    if step.error:
        notes.append(one_line(step.error, ERROR_CHARACTERS_MAX))
    return ", ".join(notes)
