"""Requests that no client should send: valid ones of every API, with parts replaced, repeated, cut and spoilt.

A stream of them is a function of its seed. Most names are of things that exist or may have been made by an earlier
request, so that mutations get past the first check.
"""

import json
import random
from collections.abc import Callable
from typing import Final, NamedTuple
from urllib.parse import quote, urlencode

from flowserver.api.rpc.actions import ACTIONS

FLOW: Final = "version: v1\ntype: flow\nsteps: [{type: pass, name: p}]\n"
WAITING: Final = (
    "version: v1\ntype: flow\nsteps: [{type: task, name: t, resourceArn: 'acs:fnf:::task/t', pattern: x}]\n"
)
NAMES: Final = ("f", "g", "q", "t", "run", "main", "1", "2")

ODD: Final = (
    "",
    " ",
    "0",
    "-1",
    "1e999",
    "9" * 30,
    "NaN",
    "null",
    "true",
    "[]",
    "{}",
    '{"a":',
    "\0",
    "\u202e\ufeff",
    "\U0010ffff",
    "%",
    "%00",
    "../../etc/passwd",
    "'; DROP TABLE flows; --",
    "${jndi:x}",
    "a" * 129,
    "x" * 5_000,
    "[" * 200,
    '{"a":' * 100,
    "2026-02-30T25:61:00Z",
    "acs:fnf:::flow/f",
    "- &a [*a]",
    "a: &a [x,x]\nb: &b [*a,*a]\nc: [*b,*b]",
    "!!python/object/apply:os.system [id]",
    "<!DOCTYPE x [<!ENTITY e SYSTEM 'file:///etc/passwd'>]><x>&e;</x>",
    "\r\nX-Injected: 1",
)
"""Values that have broken servers."""

PARAMETERS: Final = {
    "Name": NAMES,
    "FlowName": NAMES,
    "ExecutionName": NAMES,
    "ScheduleName": NAMES,
    "Definition": (FLOW, WAITING),
    "Type": ("FDL",),
    "Description": ("d",),
    "Input": ("{}", '{"a": [1, 2]}'),
    "Output": ("{}",),
    "TaskToken": ("0" * 64,),
    "Error": ("E",),
    "Cause": ("because",),
    "Limit": ("1", "100"),
    "NextToken": ("f", "2"),
    "Status": ("Running", "Failed"),
    "StartedTimeBegin": ("2026-01-01T00:00:00Z",),
    "StartedTimeEnd": ("2027-01-01T00:00:00Z",),
    "ExecutionNamePrefix": ("r",),
    "CronExpression": ("@every 1h", "0 0 * * * *"),
    "Payload": ("{}",),
    "Enable": ("true", "false"),
    "Alias": NAMES,
    "FlowVersion": ("1", "2"),
    "RoutingConfigurations": ('[{"Version": "1", "Weight": 100}]',),
    "Qualifier": ("1", "main"),
    "CallbackFnFTaskToken": ("0" * 64,),
    "RequestId": ("r",),
}

QUEUE_DOCUMENT: Final = (
    '<?xml version="1.0"?><Queue xmlns="http://mns.aliyuncs.com/doc/v1/"><DelaySeconds>0</DelaySeconds></Queue>'
)
MESSAGE_DOCUMENT: Final = (
    '<?xml version="1.0"?><Message xmlns="http://mns.aliyuncs.com/doc/v1/"><MessageBody>aGk=</MessageBody>'
    "<Priority>8</Priority><MessageTag>t</MessageTag></Message>"
)
TOPIC_DOCUMENT: Final = '<?xml version="1.0"?><Topic xmlns="http://mns.aliyuncs.com/doc/v1/"></Topic>'
SUBSCRIPTION_DOCUMENT: Final = (
    '<?xml version="1.0"?><Subscription xmlns="http://mns.aliyuncs.com/doc/v1/">'
    "<Endpoint>acs:mns:local:0:queues/q</Endpoint><NotifyStrategy>BACKOFF_RETRY</NotifyStrategy></Subscription>"
)


FORM: Final = "application/x-www-form-urlencoded"
JSON: Final = "application/json"
XML: Final = "text/xml"


def _rpc(action: str, **parameters: str) -> "Valid":
    return "POST", "/", FORM, {"Action": action, "Version": "2019-03-15", **parameters}, b""


Valid = tuple[str, str, str, dict[str, str] | str, bytes]
"""Method, path, media type, body and header lines; `*` is any of NAMES."""

_RUN: Final = {"FlowName": "*", "ExecutionName": "*"}
_FC: Final = "/2016-08-15/services/*/functions/*"
_ASYNC: Final = b"X-Fc-Invocation-Type: Async\r\n"

VALID: Final[tuple[Valid, ...]] = (
    _rpc("CreateFlow", Name="*", Definition=FLOW, Type="FDL", Description="d"),
    _rpc("CreateFlow", Name="*", Definition=WAITING, Type="FDL", Description="d"),
    _rpc("UpdateFlow", Name="*", Definition=FLOW, Description="e"),
    _rpc("DescribeFlow", Name="*"),
    _rpc("ListFlows", Limit="3"),
    _rpc("StartExecution", **_RUN, Input='{"a": [1, 2]}'),
    _rpc("StartExecution", FlowName="f"),
    _rpc("StartSyncExecution", FlowName="f", Input="{}"),
    _rpc("DescribeExecution", **_RUN),
    _rpc("StopExecution", **_RUN, Error="E", Cause="c"),
    _rpc("ListExecutions", FlowName="*", Limit="2", Status="Running"),
    _rpc("GetExecutionHistory", **_RUN, Limit="2"),
    _rpc("CreateSchedule", FlowName="*", ScheduleName="*", CronExpression="@every 60m", Payload="{}"),
    _rpc("ListSchedules", FlowName="*"),
    _rpc("PublishFlowVersion", FlowName="*"),
    ("PUT", "/v1/flows/*", JSON, {"definition": FLOW}, b""),
    ("POST", "/v1/flows/*/executions", JSON, {"name": "*", "clientToken": "*"}, b""),
    ("POST", "/v1/flows/*/executions", JSON, {"name": "*"}, b""),
    ("GET", "/v1/flows/*/executions?limit=2&status=Running", "", "", b""),
    ("GET", "/v1/flows/*/executions/*", "", "", b""),
    ("GET", "/v1/flows/*/executions/*/events?order=desc&limit=3", "", "", b""),
    ("GET", "/v1/flows/*/executions/*/steps", "", "", b""),
    ("POST", "/v1/flows/*/executions/*/stop", JSON, {"error": "*", "cause": "*"}, b""),
    ("POST", "/v1/flows/*/versions", JSON, {"description": "*"}, b""),
    ("PUT", "/v1/functions/*/*", JSON, {"url": "http://127.0.0.1:9/x"}, b""),
    ("POST", "/v1/definitions/check", JSON, {"definition": WAITING}, b""),
    ("GET", "/v1/executions?limit=5", "", "", b""),
    ("PUT", f"{_FC}/async-invoke-config", JSON, '{"maxAsyncRetryAttempts": 3, "statefulInvocation": true}', b""),
    ("GET", f"{_FC}/async-invoke-config", "", "", b""),
    ("POST", f"{_FC}/invocations", JSON, '{"a": 1}', _ASYNC),
    ("GET", f"{_FC}/stateful-async-invocations?limit=3", "", "", b""),
    ("PUT", "/queues/*", XML, QUEUE_DOCUMENT, b""),
    ("GET", "/queues/*", "", "", b""),
    ("POST", "/queues/*/messages", XML, MESSAGE_DOCUMENT, b""),
    ("GET", "/queues/*/messages?numOfMessages=2&peekonly=true", "", "", b""),
    ("GET", "/queues/*/messages?numOfMessages=2&waitseconds=0", "", "", b""),
    ("PUT", "/topics/*", XML, TOPIC_DOCUMENT, b""),
    ("PUT", "/topics/*/subscriptions/*", XML, SUBSCRIPTION_DOCUMENT, b""),
    ("POST", "/topics/*/messages", XML, MESSAGE_DOCUMENT, b""),
)
"""Requests that succeed once what they name exists."""


class Request(NamedTuple):
    """A request, as it is sent: the path is ASCII without blanks, the headers are whole lines."""

    method: str
    path: str
    kind: str
    body: bytes
    headers: bytes = b""


class Requests:
    """A stream of requests, of the API that each call chooses."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)

    def next(self) -> Request:
        """The next request: two of three are valid, or valid but for one part."""
        if self._random.random() < 0.67:
            return self._nearly_valid()
        kinds: tuple[Callable[[], Request], ...] = (self._rpc, self._rpc, self._fc, self._mns, self._mns, self._rest)
        return self._random.choice(kinds)()

    def _nearly_valid(self) -> Request:
        chance = self._random
        method, path, kind, body, headers = chance.choice(VALID)
        while "*" in path:
            path = path.replace("*", chance.choice(NAMES), 1)
        if isinstance(body, dict):
            fields = {name: chance.choice(NAMES) if value == "*" else value for name, value in body.items()}
            if chance.random() < 0.3:
                name = chance.choice(list(fields))
                fields[name] = chance.choice((chance.choice(ODD), chance.choice(fields[name] or ODD)))
            if kind == FORM:
                return Request(method, path, kind, urlencode(fields, errors="surrogatepass").encode())
            return Request(method, path, kind, json.dumps(fields).encode(), headers)
        text = self._replaced(body) if chance.random() < 0.5 else body
        return Request(method, path, kind, text.encode("utf-8", "replace"), headers)

    def _rpc(self) -> Request:
        chance = self._random
        given = [("Action", self._spoilt(chance.choice(list(ACTIONS)), 0.02)), ("Version", "2019-03-15")]
        for name in PARAMETERS if chance.random() < 0.3 else chance.sample(list(PARAMETERS), 6):
            given.append((self._spoilt(name, 0.02), self._spoilt(chance.choice(PARAMETERS[name]), 0.06)))
        if chance.random() < 0.1:
            given += chance.choices(given, k=2)
        text = urlencode(given, errors="surrogatepass").encode()
        if chance.random() < 0.1:
            return Request("GET", "/?" + self._cut(text).decode("ascii", "replace").replace("\ufffd", ""), "", b"")
        return Request("POST", "/", "application/x-www-form-urlencoded", self._cut(text))

    def _fc(self) -> Request:
        chance = self._random
        version = chance.choice(("2016-08-15", "2021-04-06"))
        service, function, one = (self._segment() for _ in range(3))
        base = f"/{version}/services/{service}/functions/{function}"
        path = chance.choice(
            (
                f"{base}/invocations",
                f"{base}/stateful-async-invocations",
                f"{base}/stateful-async-invocations/{one}",
                f"/{version}/stateful-async-invocation-functions",
                f"{base}/async-invoke-config",
                f"{base}/async-invoke-configs",
            )
        )
        config = json.dumps({"maxAsyncRetryAttempts": 3, "destinationConfig": {}, self._spoilt("x", 0.3): 1})
        line = f"X-Fc-Invocation-Type: {chance.choice(('Sync', 'Async', '?'))}\r\nX-Fc-Log-Type: Tail\r\n"
        return Request(
            chance.choice(("GET", "PUT", "POST", "DELETE")),
            f"{path}?limit={self._value('5')}&status={self._value('Running')}",
            "application/json",
            self._cut(self._spoilt(config, 0.2).encode("utf-8", "replace")),
            line.encode(),
        )

    def _mns(self) -> Request:
        chance = self._random
        path, document = chance.choice(
            (
                ("/queues", ""),
                (f"/queues/{self._segment()}", QUEUE_DOCUMENT),
                (f"/queues/{self._segment()}/messages", MESSAGE_DOCUMENT),
                ("/topics", ""),
                (f"/topics/{self._segment()}", TOPIC_DOCUMENT),
                (f"/topics/{self._segment()}/messages", MESSAGE_DOCUMENT),
                (f"/topics/{self._segment()}/subscriptions", ""),
                (f"/topics/{self._segment()}/subscriptions/{self._segment()}", SUBSCRIPTION_DOCUMENT),
            )
        )
        query = chance.choice(
            (
                "",
                "numOfMessages=16",
                "peekonly=true",
                "metaOverride=true",
                "receiptHandle=1-abc&visibilityTimeout=30",
                f"waitseconds={self._value('0')}&numOfMessages={self._value('1')}",
            )
        )
        body = self._replaced(document).encode("utf-8", "replace")
        line = f"x-mns-version: 2015-06-06\r\nx-mns-ret-number: {chance.choice(('1', '-1', 'x'))}\r\n".encode()
        method = chance.choice(("GET", "PUT", "POST", "DELETE"))
        return Request(method, f"{path}?{query}", "text/xml", self._cut(body), line)

    def _rest(self) -> Request:
        chance = self._random
        flow, name = self._segment(), self._segment()
        path = chance.choice(
            (
                "/v1/flows",
                f"/v1/flows/{flow}",
                f"/v1/flows/{flow}/executions",
                f"/v1/flows/{flow}/executions/{name}",
                f"/v1/flows/{flow}/executions/{name}/events",
                f"/v1/flows/{flow}/executions/{name}/steps",
                f"/v1/flows/{flow}/executions/{name}/redrive",
                f"/v1/flows/{flow}/schedules/{name}",
                f"/v1/flows/{flow}/aliases/{name}",
                f"/v1/functions/{flow}/{name}",
                f"/v1/queues/{flow}/messages",
                f"/v1/tasks/{name}/succeed",
                "/v1/executions",
                "/v1/redrives",
                "/v1/definitions/check",
            )
        )
        document = {
            "name": self._spoilt(chance.choice(NAMES), 0.2),
            "definition": self._spoilt(FLOW, 0.3),
            "input": chance.choice(({}, [], "x", None, {"a": self._spoilt("b", 0.5)})),
            "url": self._spoilt("http://127.0.0.1:9/x", 0.3),
            "expression": self._spoilt("@every 1h", 0.3),
        }
        for key in chance.sample(list(document), chance.randrange(len(document))):
            del document[key]
        query = f"limit={self._value('10')}&nextToken={self._value('a')}"
        return Request(
            chance.choice(("GET", "PUT", "POST", "PATCH", "DELETE")),
            f"{path}?{query}" if chance.random() < 0.3 else path,
            chance.choice(("application/json", "application/json", "text/plain", "application/yaml")),
            self._cut(self._replaced(json.dumps(document)).encode("utf-8", "replace")),
        )

    def _segment(self) -> str:
        return quote(self._spoilt(self._random.choice(NAMES), 0.1), safe="")[:2_000] or "-"

    def _value(self, text: str) -> str:
        return quote(self._spoilt(text, 0.2), safe="")

    def _spoilt(self, text: str, probability: float) -> str:
        return self._random.choice(ODD) if self._random.random() < probability else text

    def _replaced(self, text: str) -> str:
        """The text, perhaps with a stretch of it replaced by something odd."""
        if self._random.random() > 0.3 or not text:
            return text
        start = self._random.randrange(len(text))
        return text[:start] + self._random.choice(ODD) + text[start + self._random.randrange(20) :]

    def _cut(self, body: bytes) -> bytes:
        """The body, perhaps without its end, or with a byte replaced."""
        chance = self._random.random()
        if chance < 0.05:
            return body[: self._random.randrange(len(body) + 1)]
        if chance < 0.1 and body:
            where = self._random.randrange(len(body))
            return body[:where] + bytes([self._random.randrange(256)]) + body[where + 1 :]
        return body
