"""The interfaces of one server: REST, RPC by hand, and an SDK. Their answers are made comparable.

Times, ids and spelling differ between them and are left out; documents are JSON values; a refusal is its code and
status.
"""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import httpx


class Refused(Exception):
    """The server refused."""

    def __init__(self, code: str, status: int) -> None:
        super().__init__(f"{status} {code}")
        self.code = code
        self.status = status


@dataclass(frozen=True)
class Flow:
    """A flow."""

    name: str
    description: str
    definition: str


@dataclass(frozen=True)
class Execution:
    """An execution; `output` is None unless it succeeded."""

    name: str
    status: str
    input: Any
    output: Any
    is_over: bool


@dataclass(frozen=True)
class Event:
    """An event of a history."""

    event_id: int
    schedule_event_id: int
    step: str
    type: str
    detail: Any


Page = tuple[list[Any], str | None]
"""Items, and the next page's token."""


class Facade(Protocol):
    """An interface of the server; every method raises Refused."""

    def create_flow(self, name: str, definition: str, description: str) -> Flow: ...
    def update_flow(self, name: str, definition: str) -> Flow: ...
    def delete_flow(self, name: str) -> None: ...
    def describe_flow(self, name: str) -> Flow: ...
    def list_flows(self, limit: int, next_token: str | None) -> Page: ...
    def start(self, flow: str, name: str, input: Any, callback_token: str | None = None) -> Execution: ...
    def describe(self, flow: str, name: str, wait_seconds: int = 0) -> Execution: ...
    def list(self, flow: str, status: str | None, limit: int | None, next_token: str | None) -> Page: ...
    def stop(self, flow: str, name: str, error: str, cause: str) -> Execution: ...
    def history(self, flow: str, name: str, limit: int, next_token: str | None) -> Page: ...
    def succeed(self, token: str, output: Any) -> int: ...
    def fail(self, token: str, error: str, cause: str) -> int: ...


class Actions:
    """RPC style, through any `call(action, parameters)`."""

    def __init__(self, call: Callable[[str, Mapping[str, Any]], Mapping[str, Any]]) -> None:
        self._call = call

    def _ask(self, action: str, **parameters: Any) -> Mapping[str, Any]:
        return self._call(action, {name: value for name, value in parameters.items() if value is not None})

    def create_flow(self, name: str, definition: str, description: str) -> Flow:
        text = {"Definition": definition, "Description": description}
        return _flow(self._ask("CreateFlow", Name=name, Type="FDL", **text))

    def update_flow(self, name: str, definition: str) -> Flow:
        return _flow(self._ask("UpdateFlow", Name=name, Definition=definition))

    def delete_flow(self, name: str) -> None:
        self._ask("DeleteFlow", Name=name)

    def describe_flow(self, name: str) -> Flow:
        return _flow(self._ask("DescribeFlow", Name=name))

    def list_flows(self, limit: int, next_token: str | None) -> Page:
        page = self._ask("ListFlows", Limit=limit, NextToken=next_token)
        return [flow["Name"] for flow in page["Flows"]], page.get("NextToken") or None

    def start(self, flow: str, name: str, input: Any, callback_token: str | None = None) -> Execution:
        started = {"FlowName": flow, "ExecutionName": name, "Input": json.dumps(input)}
        return _execution(self._ask("StartExecution", CallbackFnFTaskToken=callback_token, **started))

    def describe(self, flow: str, name: str, wait_seconds: int = 0) -> Execution:
        wait = {"WaitTimeSeconds": wait_seconds}
        return _execution(self._ask("DescribeExecution", FlowName=flow, ExecutionName=name, **wait))

    def list(self, flow: str, status: str | None, limit: int | None, next_token: str | None) -> Page:
        page = self._ask("ListExecutions", FlowName=flow, Status=status, Limit=limit, NextToken=next_token)
        return [row["Name"] for row in page["Executions"]], page.get("NextToken") or None

    def stop(self, flow: str, name: str, error: str, cause: str) -> Execution:
        return _execution(self._ask("StopExecution", FlowName=flow, ExecutionName=name, Error=error, Cause=cause))

    def history(self, flow: str, name: str, limit: int, next_token: str | None) -> Page:
        place = {"Limit": limit, "NextToken": next_token}
        page = self._ask("GetExecutionHistory", FlowName=flow, ExecutionName=name, **place)
        names = ("EventId", "ScheduleEventId", "StepName", "Type")
        events = [_event(row, names, json.loads(row["EventDetail"])) for row in page["Events"]]
        return events, page.get("NextToken") or None

    def succeed(self, token: str, output: Any) -> int:
        return self._ask("ReportTaskSucceeded", TaskToken=token, Output=json.dumps(output))["EventId"]

    def fail(self, token: str, error: str, cause: str) -> int:
        return self._ask("ReportTaskFailed", TaskToken=token, Error=error, Cause=cause)["EventId"]


def _event(row: Mapping[str, Any], names: tuple[str, ...], detail: dict[str, Any]) -> Event:
    """The event; of a call's request id only that there is one, since it follows from the execution's id."""
    compared = {key: bool(value) if key == "requestId" else value for key, value in detail.items()}
    return Event(*(row[name] for name in names), compared)


def _flow(answer: Mapping[str, Any]) -> Flow:
    return Flow(answer["Name"], answer["Description"], answer["Definition"])


def _execution(answer: Mapping[str, Any]) -> Execution:
    documents = (json.loads(answer[key]) if answer[key] else None for key in ("Input", "Output"))
    return Execution(answer["Name"], answer["Status"], *documents, bool(answer["StoppedTime"]))


class Rest:
    """REST below /v1."""

    def __init__(self, client: httpx.Client) -> None:
        self._client = client

    def _ask(self, method: str, path: str, body: Any = None, **query: Any) -> Any:
        given = {name: value for name, value in query.items() if value is not None}
        response = self._client.request(method, f"/v1{path}", json=body, params=given)
        if response.is_error:
            raise Refused(response.json()["code"], response.status_code)
        return response.json() if response.content else None

    def create_flow(self, name: str, definition: str, description: str) -> Flow:
        body = {"name": name, "definition": definition, "description": description}
        return _rest_flow(self._ask("POST", "/flows", body))

    def update_flow(self, name: str, definition: str) -> Flow:
        return _rest_flow(self._ask("PATCH", f"/flows/{name}", {"definition": definition}))

    def delete_flow(self, name: str) -> None:
        self._ask("DELETE", f"/flows/{name}")

    def describe_flow(self, name: str) -> Flow:
        return _rest_flow(self._ask("GET", f"/flows/{name}"))

    def list_flows(self, limit: int, next_token: str | None) -> Page:
        page = self._ask("GET", "/flows", limit=limit, nextToken=next_token)
        return [flow["name"] for flow in page["flows"]], page["nextToken"]

    def start(self, flow: str, name: str, input: Any, callback_token: str | None = None) -> Execution:
        body = {"name": name, "input": input, "callbackTaskToken": callback_token}
        return _rest_execution(self._ask("POST", f"/flows/{flow}/executions", body))

    def describe(self, flow: str, name: str, wait_seconds: int = 0) -> Execution:
        return _rest_execution(self._ask("GET", f"/flows/{flow}/executions/{name}", wait=wait_seconds))

    def list(self, flow: str, status: str | None, limit: int | None, next_token: str | None) -> Page:
        page = self._ask("GET", f"/flows/{flow}/executions", status=status, limit=limit, nextToken=next_token)
        return [row["name"] for row in page["executions"]], page["nextToken"]

    def stop(self, flow: str, name: str, error: str, cause: str) -> Execution:
        body = {"error": error, "cause": cause}
        return _rest_execution(self._ask("POST", f"/flows/{flow}/executions/{name}/stop", body))

    def history(self, flow: str, name: str, limit: int, next_token: str | None) -> Page:
        page = self._ask("GET", f"/flows/{flow}/executions/{name}/events", limit=limit, nextToken=next_token)
        names = ("eventId", "scheduleEventId", "stepName", "type")
        return [_event(row, names, row["detail"]) for row in page["events"]], page["nextToken"]

    def succeed(self, token: str, output: Any) -> int:
        return self._ask("POST", "/tasks/succeed", {"taskToken": token, "output": output})["eventId"]

    def fail(self, token: str, error: str, cause: str) -> int:
        return self._ask("POST", "/tasks/fail", {"taskToken": token, "error": error, "cause": cause})["eventId"]


def _rest_flow(answer: Mapping[str, Any]) -> Flow:
    return Flow(answer["name"], answer["description"], answer["definition"])


def _rest_execution(answer: Mapping[str, Any]) -> Execution:
    documents = (answer["input"], answer["output"])
    return Execution(answer["name"], answer["status"], *documents, answer["stoppedTime"] is not None)
