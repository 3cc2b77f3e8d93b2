"""Calls about redrives: executions that ended without success go on where they failed."""

import uuid
from collections.abc import Sequence
from typing import Final

from flowserver.client.calls import send
from flowserver.client.exchanges import Conversation
from flowserver.client.paths import path_of
from flowserver.client.results import Execution, Json, ManyRedriven, RedrivePlan

LOOKED_AT: Final = 20
"""Executions that one request of a bulk redrive looks at: few enough for an answer within seconds."""


def redrive(
    flow: str,
    name: str,
    *,
    from_step: str | None = None,
    definition: str = "same",
    input: Json | None = None,
    children: str = "continue",
) -> Conversation[Execution]:
    """Let an execution that has ended badly go on where it failed; `from_step` goes back to an earlier step.

    `definition` is `same`, `current` or the number of a version. `children`: `continue` the executions of sub-flows
    that steps failed with, or start `new` ones. A token made here lets the request be repeated when its answer is lost.
    """
    body = _redrive(from_step, definition, input, children) | {"clientToken": uuid.uuid4().hex}
    path = path_of("flows", flow, "executions", name, "redrive")
    return send(Execution, "POST", path, body, repeatable=True)


def plan_redrive(
    flow: str,
    name: str,
    *,
    from_step: str | None = None,
    definition: str = "same",
    input: Json | None = None,
    children: str = "continue",
) -> Conversation[RedrivePlan]:
    """What a redrive would do, and why it cannot be made; nothing changes."""
    body = _redrive(from_step, definition, input, children) | {"dryRun": True}
    return send(RedrivePlan, "POST", path_of("flows", flow, "executions", name, "redrive"), body, repeatable=True)


def redrive_many(
    flow: str,
    *,
    status: str = "Failed",
    waiting_for_redrive: bool = False,
    started_from: str | None = None,
    started_to: str | None = None,
    name_prefix: str | None = None,
    error: str | None = None,
    executions: Sequence[str] | None = None,
    from_step: str | None = None,
    definition: str = "same",
    children: str = "continue",
    next_token: str | None = None,
    limit: int = LOOKED_AT,
    client_token: str | None = None,
) -> Conversation[ManyRedriven]:
    """Redrive executions of a flow that match, the newest first: of the next `limit` ones, and up to a bound in bytes.

    Go on with the `next_token` of the answer until it is None. With `waiting_for_redrive` those that wait for it, else
    those that ended with `status`: `Failed`, `Stopped` or `TimedOut`. `executions` are up to 100 names: of these only.

    The request is repeated when its answer is lost. A token, made here or given, prevents that the repeat redrives what
    the first try has redriven; the answer has those of them that have failed again in `repeated`, and lacks those that
    run. Give `client_token` to repeat a call yourself.
    """
    conditions = {
        "status": None if waiting_for_redrive else status,
        "waitingForRedrive": waiting_for_redrive or None,
        "startedFrom": started_from,
        "startedTo": started_to,
        "namePrefix": name_prefix,
        "error": error,
        "executions": None if executions is None else list(executions),
        "nextToken": next_token,
        "limit": limit,
        "clientToken": client_token or uuid.uuid4().hex,
    }
    body = {key: value for key, value in conditions.items() if value is not None}
    body |= _redrive(from_step, definition, None, children)
    return send(ManyRedriven, "POST", path_of("flows", flow, "redrive"), body, repeatable=True)


def _redrive(from_step: str | None, definition: str, input: Json | None, children: str) -> Json:
    wanted = {"from": from_step, "definition": definition, "input": input}
    wanted["children"] = children if children != "continue" else None
    return {key: value for key, value in wanted.items() if value is not None}
