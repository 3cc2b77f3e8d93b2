"""Whether an execution was started by a call whose answer was lost."""

import json
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Final

from flowserver.base.json_values import load_json
from flowserver.client.exchanges import ANSWER_DEPTH_MAX, Answer, json_content
from flowserver.client.results import Execution, Json

LATEST: Final = "LATEST"


def is_of_this_call(
    found: Execution, answer: Answer, *, input: Json | None, qualifier: str | None, since_seconds: float
) -> bool:
    """Whether an execution has that input and qualifier, and began within `since_seconds` before the answer.

    By the server's clock, which the answer's `Date` shows to the second; false without one.
    """
    runs = found.alias or (LATEST if found.version is None else str(found.version))
    if runs != (qualifier or LATEST) or _text(found.input) != _text(input or {}):
        return False
    try:
        now = parsedate_to_datetime(answer.headers.get("date", "")).replace(tzinfo=UTC)
        began = datetime.fromisoformat(found.started_time)
        return (now - began).total_seconds() <= since_seconds
    except (ValueError, TypeError):
        return False


def _text(document: Json) -> str:
    """The same text for the same JSON object, as it is after it was sent."""
    return json.dumps(load_json(json_content(document), ANSWER_DEPTH_MAX), sort_keys=True)
