"""What can be asked of a server: each call is a conversation, each listing a description of its pages."""

import time
import uuid
from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

from msgspec.structs import replace

from flowserver.client.errors import Conflict, ServerFault
from flowserver.client.exchanges import REPLY_SECONDS, Answer, Conversation, Request, json_content
from flowserver.client.listings import Listing, Query, given
from flowserver.client.lost_starts import is_of_this_call
from flowserver.client.paths import function_path, path_of
from flowserver.client.results import (
    Event,
    Execution,
    Flow,
    Function,
    Invocation,
    Iteration,
    Json,
    Nothing,
    Result,
    Step,
    Task,
    typed,
)
from flowserver.client.server_results import Readiness

R = TypeVar("R", bound=Result)


def get(kind: type[R], path: str, **query: str | int | bool | None) -> Conversation[R]:
    """Read one object."""
    patience = REPLY_SECONDS + int(query.get("wait") or 0)
    wanted = Request(method="GET", path=path, query=given(query), repeatable=True, patience_seconds=patience)
    answer = yield wanted
    return typed(kind, answer.document)


def send(
    kind: type[R],
    method: str,
    path: str,
    body: object = None,
    *,
    query: Mapping[str, Any] | None = None,
    repeatable: bool = False,
    wait: int = 0,
) -> Conversation[R]:
    """Send a body; returns the object that answers it."""
    request = _request(method, path, body, repeatable=repeatable, wait=wait)
    answer = yield request if query is None else replace(request, query=query)
    return typed(kind, answer.document)


def _request(method: str, path: str, body: object, *, repeatable: bool = False, wait: int = 0) -> Request:
    return Request(
        method=method,
        path=path,
        query={"wait": wait} if wait else {},
        content=None if body is None else json_content(body),
        headers={} if body is None else {"content-type": "application/json"},
        repeatable=repeatable,
        patience_seconds=REPLY_SECONDS + wait,
    )


# Executions


def start(
    flow: str,
    input: Json | None = None,
    *,
    name: str | None = None,
    qualifier: str | None = None,
    wait_seconds: int = 0,
) -> Conversation[Execution]:
    """Start an execution; with `wait_seconds` the reply comes when it has ended or that time is over.

    `qualifier` is a published version, such as `3`, or an alias.
    Without a name it gets a random one, made here, so that the request can be repeated when its answer is lost. If the
    first try has started an execution that has ended since, that is returned. Under a `name` of yours it counts as the
    first try's if it has this input and qualifier, and has not begun before this call; that is known to some seconds,
    because the server shows its time to the second. Otherwise raises Conflict, as for any name that is taken.
    """
    began = time.monotonic()
    chosen = _random_name() if name is None else name
    started_path = path_of("flows", flow, "executions", chosen)
    given_body = {"name": chosen, "input": input, "qualifier": qualifier}
    body = {key: value for key, value in given_body.items() if value is not None}
    path = path_of("flows", flow, "executions")
    try:
        return (yield from send(Execution, "POST", path, body, repeatable=True, wait=wait_seconds))
    except Conflict as error:
        if not error.was_repeated:
            raise
        answer = yield Request(method="GET", path=started_path, repeatable=True)
        found = typed(Execution, answer.document)
        since = time.monotonic() - began
        if name is None or is_of_this_call(found, answer, input=input, qualifier=qualifier, since_seconds=since):
            return found  # the first try did start it, and it has ended since
        raise


def _random_name() -> str:
    """A name begins with a letter."""
    digits = uuid.uuid4().hex
    return "abcdef"[int(digits[0], 16) % 6] + digits[1:]


def get_execution(
    flow: str, name: str, *, wait_seconds: int = 0, current_steps: bool = False, documents: bool = True
) -> Conversation[Execution]:
    """An execution with its documents, as it is when it has ended or after `wait_seconds` at most.

    With `current_steps` also the steps that it is at, or at which it ended without success. Without `documents` it
    comes as lists show it: without input, output and definition, which a program that asks often need not read.
    """
    shown = ({"currentSteps": True} if current_steps else {}) | ({} if documents else {"documents": False})
    return get(Execution, path_of("flows", flow, "executions", name), wait=wait_seconds or None, **shown)


def steps(flow: str, name: str, *, at: int | None = None) -> Listing[Step]:
    """What became of each step of an execution, in the order in which they were entered first.

    With `at` as they were after the event of this id.
    """
    return Listing(path_of("flows", flow, "executions", name, "steps"), "steps", Step, {"at": at})


def iterations(
    flow: str, name: str, step: str, *, status: str | None = None, at: int | None = None
) -> Listing[Iteration]:
    """What became of each iteration of a foreach that has begun, by its index.

    `step` is the path of the foreach: `pack`, or `pack[3].inner` in an iteration of another. `status` is `Running`,
    `Succeeded`, `Failed` or `Cancelled`. With `at` as they were after the event of this id.
    """
    query: Query = {"step": step, "status": status, "at": at}
    return Listing(path_of("flows", flow, "executions", name, "iterations"), "iterations", Iteration, query)


def stop(flow: str, name: str, *, error: str | None = None, cause: str | None = None) -> Conversation[Execution]:
    """Stop a running execution for good."""
    body = given({"error": error, "cause": cause})
    return send(Execution, "POST", path_of("flows", flow, "executions", name, "stop"), body)


def restart(flow: str, name: str) -> Conversation[Execution]:
    """Let a parked execution go on; if what was wrong still is, it is parked again (`parked_error`)."""
    return send(Execution, "POST", path_of("flows", flow, "executions", name, "restart"))


def executions(
    flow: str | None = None,
    *,
    status: str | None = None,
    started_from: str | None = None,
    started_to: str | None = None,
    ended_from: str | None = None,
    ended_to: str | None = None,
    name_prefix: str | None = None,
    parked: bool | None = None,
    waiting_for_redrive: bool | None = None,
    qualifier: str | None = None,
) -> Listing[Execution]:
    """Executions of a flow or of all, the newest first, without documents. Instants are RFC 3339 with an offset.

    `ended_from` and `ended_to` need the status `Failed`, `Stopped` or `TimedOut`; those that ended last come first.
    `qualifier` is a version or an alias, or LATEST for the flow's own definition.
    """
    query = {
        "status": status,
        "startedFrom": started_from,
        "startedTo": started_to,
        "endedFrom": ended_from,
        "endedTo": ended_to,
        "namePrefix": name_prefix,
        "parked": parked,
        "waitingForRedrive": waiting_for_redrive,
        "qualifier": qualifier,
    }
    path = path_of("executions") if flow is None else path_of("flows", flow, "executions")
    return Listing(path, "executions", Execution, query)


def history(
    flow: str,
    name: str,
    *,
    after: int = 0,
    before: int | None = None,
    step: str | None = None,
    path: str | None = None,
    types: Sequence[str] = (),
    newest_first: bool = False,
    paths: bool = False,
) -> Listing[Event]:
    """The events of an execution so far, between those with these ids: all, or those of a step or of some types.

    `step` is a name or a path such as `pack[17].label`; `path` names one step exactly. With `paths` every event has its
    `step_path`.
    """
    query = {
        "after": after or None,
        "before": before,
        "step": step,
        "path": path,
        "type": list(types) or None,
        "order": "desc" if newest_first else None,
        "paths": paths or None,
    }
    return Listing(path_of("flows", flow, "executions", name, "events"), "events", Event, query)


# Flows


def flows(*, name_prefix: str | None = None) -> Listing[Flow]:
    """The flows by name, all or those whose names begin so, without their definitions."""
    return Listing(path_of("flows"), "flows", Flow, {"namePrefix": name_prefix})


def get_flow(name: str) -> Conversation[Flow]:
    """A flow with its definition, as it was sent."""
    answer = yield Request(method="GET", path=path_of("flows", name), repeatable=True)
    return _flow(answer)


def put_flow(
    name: str,
    definition: str,
    *,
    description: str | None = None,
    if_match: str | None = None,
    only_new: bool = False,
    strict: bool = False,
) -> Conversation[Flow]:
    """Give a flow this definition, whether it exists or not; what the server warns of is in `warnings`.

    `if_match` is the `etag` of the state that may be replaced; raises Conflict for another, and with `only_new` if
    there is a flow of that name. `strict` refuses a definition with warnings.
    """
    body = {"definition": definition} | ({} if description is None else {"description": description})
    request = _request("PUT", path_of("flows", name), body, repeatable=True)
    conditions = {"if-match": if_match, "if-none-match": "*" if only_new else None}
    headers = {**request.headers, **{key: value for key, value in conditions.items() if value is not None}}
    try:
        answer = yield replace(request, headers=headers, query={"strict": True} if strict else {})
    except Conflict as error:
        found = yield from get_flow(name)
        if not error.was_repeated or found.definition != definition:
            raise
        return found  # the first try, whose answer was lost, has done it
    return _flow(answer)


def update_flow(
    name: str,
    *,
    description: str | None = None,
    retention_days: int | None = None,
    on_retries_exhausted: str | None = None,
) -> Conversation[Flow]:
    """Change settings of a flow; what is None stays as it is.

    `on_retries_exhausted` is `fail` or `waitForRedrive`, for executions that are started from then on.
    """
    body = {
        "description": description,
        "retentionDays": retention_days,
        "onRetriesExhausted": on_retries_exhausted,
    }
    answer = yield _request("PATCH", path_of("flows", name), given(body), repeatable=True)
    return _flow(answer)


def patch_flow(name: str, settings: Json, *, dry_run: bool = False) -> Conversation[Flow]:
    """Change settings of a flow, with the fields of the API; a `retentionDays` of None means the server's setting.

    With `dry_run` they are checked, and nothing changes.
    """
    request = _request("PATCH", path_of("flows", name), settings, repeatable=True)
    answer = yield replace(request, query={"dryRun": True} if dry_run else {})
    return _flow(answer)


def delete_flow(name: str) -> Conversation[Nothing]:
    """Delete a flow and stop its executions."""
    return send(Nothing, "DELETE", path_of("flows", name))


def _flow(answer: Answer) -> Flow:
    return typed(Flow, answer.document, etag=answer.headers.get("etag"), isNew=answer.status == 201)


# Functions and their invocations


def functions() -> Listing[Function]:
    """The registered functions."""
    return Listing(path_of("functions"), "functions", Function, {})


def get_function(name: str) -> Conversation[Function]:
    """The registration of SERVICE/FUNCTION."""
    return get(Function, function_path(name))


def put_function(name: str, registration: Json, *, dry_run: bool = False) -> Conversation[Function]:
    """Register SERVICE/FUNCTION, with the fields of the API: `url`, `timeoutSeconds`, `headers` and so on.

    With `dry_run` nothing changes, and the reply has the present `lastModifiedTime` if nothing would.
    """
    request = _request("PUT", function_path(name), registration, repeatable=True)
    answer = yield replace(request, query={"dryRun": True} if dry_run else {})
    return typed(Function, answer.document)


def delete_function(name: str) -> Conversation[Nothing]:
    """Take SERVICE/FUNCTION out of the registry."""
    return send(Nothing, "DELETE", function_path(name))


def parked_invocations() -> Listing[Invocation]:
    """Asynchronous invocations that the server has set aside."""
    return Listing(path_of("invocations", "parked"), "invocations", Invocation, {})


def change_invocation(name: str, invocation_id: str, action: str) -> Conversation[Invocation]:
    """Let a parked asynchronous invocation of SERVICE/FUNCTION go on (`restart`), or `stop` any."""
    return send(Invocation, "POST", function_path(name, "invocations", invocation_id, action))


# Tasks


def tasks(
    flow: str | None = None, *, execution: str | None = None, older_than_seconds: int | None = None
) -> Listing[Task]:
    """Tasks that wait for a report, those of the oldest executions first."""
    query = {"flow": flow, "execution": execution, "olderThanSeconds": older_than_seconds}
    return Listing(path_of("tasks"), "tasks", Task, query)


def succeed_task(token: str, output: Any = None) -> Conversation[Nothing]:
    """Report that a task which waits for its token has done its work."""
    body = {"taskToken": token, "output": {} if output is None else output}
    return send(Nothing, "POST", path_of("tasks", "succeed"), body)


def fail_task(token: str, error: str, cause: str | None = None) -> Conversation[Nothing]:
    """Report that a task which waits for its token has failed."""
    body = given({"taskToken": token, "error": error, "cause": cause})
    return send(Nothing, "POST", path_of("tasks", "fail"), body)


# The server


def ready() -> Conversation[bool]:
    """Whether the server serves requests."""
    return (yield from readiness()).ready


def readiness() -> Conversation[Readiness]:
    """Whether the server serves requests, and why it refuses new work, if it does."""
    try:
        answer = yield Request(method="GET", path="/readyz")
    except ServerFault:
        return Readiness(ready=False)
    return typed(Readiness, answer.document)


def metrics() -> Conversation[dict[str, float]]:
    """What the server measures, by name, without what has labels. docs/reference/metrics.md says what they mean."""
    answer = yield Request(method="GET", path="/metrics", repeatable=True)
    lines = answer.content.decode(errors="replace").split("\n")
    pairs = (line.rpartition(" ") for line in lines if line and not line.startswith("#") and "{" not in line)
    return {name: float(value) for name, _, value in pairs}
