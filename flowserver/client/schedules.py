"""Calls about schedules. Their fields have the names of the API, such as `cronExpression`."""

from typing import Any

from flowserver.client.calls import get, send
from flowserver.client.exchanges import Conversation
from flowserver.client.listings import Listing
from flowserver.client.paths import path_of
from flowserver.client.results import Nothing, Schedule


def schedules(flow: str | None = None) -> Listing[Schedule]:
    """Schedules of a flow or of all, by flow and name."""
    path = path_of("schedules") if flow is None else path_of("flows", flow, "schedules")
    return Listing(path, "schedules", Schedule, {})


def get_schedule(flow: str, name: str) -> Conversation[Schedule]:
    """A schedule with its next and its last ten times."""
    return get(Schedule, _path(flow, name))


def create_schedule(flow: str, name: str, fields: dict[str, Any]) -> Conversation[Schedule]:
    """Create a schedule; raises Conflict if there is one of that name."""
    return send(Schedule, "POST", path_of("flows", flow, "schedules"), {"name": name, **fields})


def put_schedule(
    flow: str, name: str, fields: dict[str, Any], *, dry_run: bool = False, strict: bool = False
) -> Conversation[Schedule]:
    """Give a schedule these fields, whether it exists or not; what is absent stays as it is.

    `strict` refuses a qualifier that does not exist. With `dry_run` nothing changes, and the flow need not exist yet.
    With a number of `remainingActions` the request is not repeated when its answer is lost: that would count anew.
    """
    given = {"dryRun": dry_run, "strict": strict}
    query = {option: True for option, is_given in given.items() if is_given}
    return send(Schedule, "PUT", _path(flow, name), fields, query=query, repeatable=dry_run or _sets_no_count(fields))


def update_schedule(flow: str, name: str, fields: dict[str, Any]) -> Conversation[Schedule]:
    """Change these fields of a schedule. Not repeated with a number of `remainingActions`, as `put_schedule`."""
    return send(Schedule, "PATCH", _path(flow, name), fields, repeatable=_sets_no_count(fields))


def delete_schedule(flow: str, name: str) -> Conversation[Nothing]:
    """Delete a schedule. Its executions continue."""
    return send(Nothing, "DELETE", _path(flow, name))


def pause_schedule(flow: str, name: str, note: str = "") -> Conversation[Schedule]:
    """Start nothing at further ticks."""
    return send(Schedule, "POST", _path(flow, name, "pause"), {"note": note}, repeatable=True)


def resume_schedule(flow: str, name: str, note: str = "") -> Conversation[Schedule]:
    """Start at further ticks again."""
    return send(Schedule, "POST", _path(flow, name, "resume"), {"note": note}, repeatable=True)


def trigger_schedule(flow: str, name: str, overlap: str | None = None) -> Conversation[Nothing]:
    """Start an execution now; `document["executionName"]` is its name."""
    return send(Nothing, "POST", _path(flow, name, "trigger"), _overlap(overlap))


def backfill_schedule(
    flow: str, name: str, start_time: str, end_time: str, overlap: str | None = None
) -> Conversation[Nothing]:
    """Run the ticks of a range that has passed, both ends included; `document["ticks"]` is their number."""
    body = {"startTime": start_time, "endTime": end_time, **_overlap(overlap)}
    return send(Nothing, "POST", _path(flow, name, "backfill"), body)


def _path(flow: str, name: str, *rest: str) -> str:
    return path_of("flows", flow, "schedules", name, *rest)


def _overlap(overlap: str | None) -> dict[str, str]:
    return {} if overlap is None else {"overlap": overlap}


def _sets_no_count(fields: dict[str, Any]) -> bool:
    """Whether the fields may be given twice; a number of starts that are left falls in between."""
    return fields.get("remainingActions") is None
