"""Request ids of calls: under the same id a call is in the history, in the server's log and in the function's log."""

import re
from typing import Final
from uuid import UUID

import uuid_utils

_CALLS: Final = uuid_utils.UUID(str(UUID("7c1b4d0e-5d1f-5c5e-9b0a-3f1d2f6f0a11")))
"""Name space of the ids; any fixed value does."""

_REQUEST_ID: Final = re.compile(r"[!-~]{1,128}\Z")


def call_request_id(idempotency_key: str, attempt: int) -> str:
    """The id that is sent with a call: a UUID, the same whenever the same attempt is sent again."""
    return str(uuid_utils.uuid5(_CALLS, f"{idempotency_key}/{attempt}"))


def readable_request_id(text: str) -> str | None:
    """The id that a function has answered, if it is one: 1 to 128 printable ASCII characters without blanks."""
    text = text.strip()
    return text if _REQUEST_ID.match(text) else None
