"""States of invocations that have ended."""

from typing import Any

from flowserver.machine.invocations.states import InvocationSettings, InvocationState, InvocationStatus


def ended(status: InvocationStatus = InvocationStatus.SUCCEEDED, **changes: Any) -> InvocationState:
    given = {
        "status": status,
        "created_at": 1,
        "settings": InvocationSettings(),
        "events": (),
        "ended_at": 9,
        **changes,
    }
    return InvocationState(**given)


FAILED = ended(InvocationStatus.FAILED, attempt=2, error="Boom", cause='{"errorType":"Boom"}')
EXPIRED = ended(InvocationStatus.EXPIRED, error="FC.InvocationExpired", cause="it waited")
