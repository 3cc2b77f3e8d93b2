"""One execution for people: what `describe` prints."""

import json
from datetime import datetime
from typing import Any

from flowserver.cli.remote.times import shown_instant, shown_span
from flowserver.cli.tables import aligned
from flowserver.client.results import Execution


def described(execution: Execution, now: datetime) -> str:
    """Its state, times, error and documents."""
    rows = [
        ["execution:", execution.path],
        ["status:", execution.status],
        ["started:", shown_instant(execution.started_time, now)],
        ["stopped:", shown_instant(execution.stopped_time, now)],
        ["took:", shown_span(execution.started_time, execution.stopped_time, now)],
        ["failed step:", execution.failed_step or ""],
        ["error:", execution.error or ""],
        ["cause:", execution.cause or ""],
        ["parked:", execution.parked_error or ""],
    ]
    documents = [("input", execution.input), ("output", execution.output)]
    blocks = [aligned([row for row in rows if row[1]])]
    blocks += [f"{name}:\n{_document(document)}" for name, document in documents if document is not None]
    return "\n".join(blocks)


def _document(document: dict[str, Any]) -> str:
    return json.dumps(document, ensure_ascii=False, indent=2)
