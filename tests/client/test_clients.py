"""`flowserver.client` against a real server: both clients do the same, and repeat only requests that are safe to
repeat.
"""

import inspect
import threading
from collections.abc import AsyncIterator, Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer

import httpx
import pytest

from flowserver.client import (
    AsyncClient,
    Client,
    ClientError,
    Conflict,
    Flow,
    Invalid,
    NotFound,
    NotPermitted,
    ServerFault,
    Task,
    Throttled,
    Unreachable,
    Unreadable,
    WaitedTooLong,
)
from flowserver.client.errors import AddressInvalid
from flowserver.client.event_streams import Feed
from tests.support.server import ServerProcess

GREET = (
    "version: v1\ntype: flow\nsteps:\n  - {type: pass, name: greet, outputMappings: [{target: g, source: $input.n}]}\n"
)
WAIT = "version: v1\ntype: flow\nsteps:\n  - {type: wait, name: w, duration: 3600}\n"


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    with ServerProcess(f"sqlite:///{tmp_path_factory.mktemp('client')}/flows.db") as running:
        yield running


@pytest.fixture
def client(server):
    with Client(server.url) as connected:
        yield connected


@pytest.fixture
def answering():
    """A server that gives these answers, one after the other, and records its requests."""
    servers = []

    def start(*answers):
        asked = []

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self):
                body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
                asked.append((self.command, self.path, dict(self.headers), body))
                answer = answers[min(len(asked), len(answers)) - 1]
                if answer is None:
                    self.close_connection = True
                    return
                status, headers, content = answer
                self.send_response(status)
                for name, value in headers.items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(content)

            do_POST = do_PUT = do_PATCH = do_DELETE = do_GET

            def log_message(self, *_):
                pass

        servers.append(HTTPServer(("127.0.0.1", 0), Handler))
        threading.Thread(target=servers[-1].serve_forever, args=(0.05,), daemon=True).start()
        return f"http://127.0.0.1:{servers[-1].server_port}", asked

    yield start
    for each in servers:
        each.shutdown()
        each.server_close()


@pytest.fixture
def no_pauses(monkeypatch):
    """Records the pauses instead of making them."""
    pauses = []
    monkeypatch.setattr("time.sleep", pauses.append)
    return pauses


RUNNING = b'{"flowName": "f", "name": "e", "status": "Running", "startedTime": "2026-01-02T03:04:05Z"}'


def test_started_awaited_and_listed(client):
    assert client.put_flow("greet", GREET).is_new
    assert not client.put_flow("greet", GREET).is_new
    assert client.get_flow("greet").definition == GREET
    started = client.start("greet", {"n": 2**70})
    ended = client.wait("greet", started.name)
    assert (ended.succeeded, ended.output, ended.document["output"]) == (True, {"g": 2**70}, {"g": 2**70})
    shown = client.get_execution("greet", started.name, documents=False)
    assert (shown.succeeded, shown.input, shown.output, shown.definition) == (True, {}, None, "")
    assert client.get_execution("greet", started.name) == ended
    client.start("greet", name="second", wait_seconds=5)
    assert [each.name for each in client.executions("greet")] == ["second", started.name]
    assert [each.name for each in client.executions("greet", name_prefix="sec")] == ["second"]
    assert "greet" in [each.name for each in client.flows()]
    assert [each.name for each in client.flows(name_prefix="gre")] == ["greet"]
    events = list(client.events("greet", "second"))
    assert [each.event_id for each in events] == list(range(1, len(events) + 1))
    assert events[-1].type == "ExecutionSucceeded"
    assert list(client.history("greet", "second")) == events
    assert list(client.events("greet", "second", after=len(events))) == []


def test_a_definition_is_drawn(client):
    drawn = client.draw_definition(GREET)
    assert [node["name"] for node in drawn.nodes] == ["greet"]
    assert drawn.lists == [{"id": 0, "kind": "root", "parent": None, "index": None, "nodes": [0]}]
    assert [(edge["from"], edge["to"]) for edge in drawn.edges] == [(0, None)]


def test_a_definition_is_tested(client):
    tested = client.test_definition(GREET, "flow: greet.yaml\ntests: [{name: greets, expect: {never: [greet]}}]")
    assert (tested.passed, tested.mistakes, tested.coverage["percent"]) == (False, [], 100)
    assert [test["failures"][0]["message"] for test in tested.tests] == ["step greet was entered"]


def test_steps_and_iterations_as_they_are_and_were(client):
    loop = "iterationMapping: {collection: $.list, item: it}, steps: [{type: pass, name: label}]"
    client.put_flow("loop", f"version: v1\ntype: flow\nsteps: [{{type: foreach, name: pack, {loop}}}]")
    client.start("loop", {"list": [1, 2, 3]}, name="one")
    client.wait("loop", "one", timeout_seconds=60)
    pack, label = client.steps("loop", "one")
    assert (pack.iterations.done, label.entered, label.last_attempts) == (3, 3, [])
    assert [step.status for step in client.steps("loop", "one", at=2)] == ["Running"]
    first, *others = client.iterations("loop", "one", "pack", status="Succeeded")
    assert (first.path, first.status, first.step, first.error, len(others)) == (
        "pack[0]",
        "Succeeded",
        "label",
        None,
        2,
    )
    (running,) = client.iterations("loop", "one", "pack", at=4)
    assert (running.index, running.status) == (0, "Running")


async def test_the_same_without_blocking(server):
    async with AsyncClient(server.url) as client:
        await client.put_flow("later", GREET)
        started = await client.start("later", {"n": 1})
        assert (await client.wait("later", started.name)).output == {"g": 1}
        events = [event async for event in client.events("later", started.name)]
        assert events[-1].type == "ExecutionSucceeded"
        assert [each.name async for each in client.executions("later")] == [started.name]
        with pytest.raises(NotFound):
            await client.get_flow("none")


def test_both_clients_have_the_same_methods():
    def methods(kind):
        return {name for name, _ in inspect.getmembers(kind, inspect.isfunction) if not name.startswith("_")}

    assert methods(Client) == methods(AsyncClient)


def test_waiting_within_a_time_limit(client):
    client.put_flow("waits", WAIT)
    started = client.start("waits")
    with pytest.raises(WaitedTooLong):
        client.wait("waits", started.name, timeout_seconds=0)
    assert client.stop("waits", started.name, error="E", cause="because").status == "Stopped"
    with pytest.raises(Conflict) as refused:
        client.stop("waits", started.name)
    assert refused.value.code == "ExecutionAlreadyCompleted"


def test_errors_name_the_cause(client):
    with pytest.raises(Invalid) as refused:
        client.put_flow("wrong", "version: v1\ntype: flow\nsteps: []\n")
    assert refused.value.diagnostics[0]["line"] == 3
    with pytest.raises(NotFound) as missing:
        client.get_execution("none", "e")
    assert (missing.value.code, missing.value.status) == ("FlowNotExists", 404)
    with pytest.raises(AddressInvalid):
        Client("nonsense")
    with Client("http://127.0.0.1:1", retries=0) as nowhere, pytest.raises(Unreachable):
        nowhere.get_flow("f")


@pytest.mark.parametrize(
    ("status", "kind"), [(401, NotPermitted), (403, NotPermitted), (412, Conflict), (500, ServerFault)]
)
def test_a_refused_request_is_not_repeated(answering, status, kind):
    url, asked = answering((status, {}, b""))
    with Client(url) as client, pytest.raises(kind):
        client.get_flow("f")
    assert len(asked) == 1


def test_a_busy_server_is_asked_again_at_its_time(answering, no_pauses):
    url, asked = answering((429, {"Retry-After": "7"}, b"{}"), (503, {}, b"{}"), (200, {}, RUNNING))
    with Client(url) as client:
        assert client.get_execution("f", "e").name == "e"
    assert len(asked) == 3
    assert no_pauses[0] == 7
    assert no_pauses[1] <= 1


def test_it_gives_up(answering, no_pauses):
    url, asked = answering((429, {}, b"{}"))
    with Client(url, retries=2) as client, pytest.raises(Throttled):
        client.get_execution("f", "e")
    assert len(asked) == 3


def test_a_request_that_may_have_succeeded_is_not_repeated(answering, no_pauses):
    url, asked = answering(None)
    with Client(url) as client, pytest.raises(Unreachable):
        client.stop("f", "e")
    assert len(asked) == 1
    url, asked = answering((503, {}, b"{}"))
    with Client(url) as client, pytest.raises(ServerFault):
        client.succeed_task("token")
    assert len(asked) == 1


@pytest.mark.parametrize("answer", [None, (503, {}, b"{}")])
def test_a_purge_is_not_repeated_so_messages_sent_after_it_stay(answering, no_pauses, answer):
    url, asked = answering(answer, (200, {}, b'{"deleted": 1}'))
    with Client(url) as client, pytest.raises(ClientError):
        client.purge_queue("jobs")
    assert [each[1] for each in asked] == ["/v1/queues/jobs/purge"]


def test_a_count_of_starts_is_not_set_twice(answering, no_pauses):
    """A start between the two requests would not count."""
    for change in (Client.put_schedule, Client.update_schedule):
        url, asked = answering((503, {}, b"{}"))
        with Client(url, retries=1) as client, pytest.raises(ServerFault):
            change(client, "f", "once", {"remainingActions": 1})
        assert len(asked) == 1
        with Client(url, retries=1) as client, pytest.raises(ServerFault):
            change(client, "f", "once", {"remainingActions": None})
        assert len(asked) == 3


def test_a_start_whose_answer_is_lost_is_repeated_under_the_same_name(answering, no_pauses):
    taken = (409, {}, b'{"code": "ExecutionAlreadyExists", "detail": "it has ended"}')
    url, asked = answering(None, taken, (200, {}, RUNNING))
    with Client(url) as client:
        assert client.start("f", {"n": 1}).name == "e"
    assert asked[0][3] == asked[1][3]
    assert [each[0] for each in asked] == ["POST", "POST", "GET"]
    url, asked = answering(None, taken, (200, {}, RUNNING))
    with Client(url) as client, pytest.raises(Conflict):
        client.start("f", name="e")  # it began long before


@pytest.fixture
def losing_start(client, monkeypatch):
    """Starts an execution; the answer to the first request is lost, and the execution ends before the second."""
    send = client._http.request

    def start(name, *arguments, **options):
        def lose(**sent):
            monkeypatch.setattr(client._http, "request", send)
            send(**sent)
            assert client.wait("named", name).ended
            raise httpx.ReadError("reset")

        monkeypatch.setattr(client._http, "request", lose)
        monkeypatch.setattr("time.sleep", lambda _: None)
        return client.start("named", *arguments, name=name, **options)

    return start


def test_a_start_whose_answer_is_lost_returns_what_it_has_started_under_a_name(client, losing_start):
    """Though that has ended; not what another call has started, with another input, or before."""
    client.put_flow("named", GREET)
    started = losing_start("order-1", {"n": 2**70, "m": [1, {}]})
    assert (started.name, started.succeeded, started.output) == ("order-1", True, {"g": 2**70})
    client.start("named", {"n": 1}, name="order-2", wait_seconds=5)
    for other in ({"n": 2}, {"n": 1.0}, {"n": True}, None):
        with pytest.raises(Conflict):
            losing_start("order-2", other)


def test_events_continue_where_the_connection_broke(answering, no_pauses):
    def event(number, type="StepEntered"):
        return b'id: %d\ndata: {"eventId": %d, "type": "%s", "time": "t"}\n\n' % (number, number, type.encode())

    url, asked = answering(
        (200, {}, event(1) + event(2) + b'id: 3\ndata: {"eve'),
        (503, {}, b""),
        (200, {}, b": ping\n\n" + event(2) + event(3, "ExecutionFailed")),
    )
    silences = []
    with Client(url) as client:
        events = client.events("f", "e", on_silence=lambda: silences.append(len(asked)))
        assert [each.event_id for each in events] == [1, 2, 3]
    assert silences == [3]
    assert [each[2]["last-event-id"] for each in asked] == ["0", "2", "2"]
    url, asked = answering((200, {}, b""))
    with Client(url, retries=2) as client, pytest.raises(Unreachable):
        list(client.events("f", "e", outage_seconds=0))
    assert len(asked) == 3


@pytest.mark.parametrize("is_async", [False, True])
async def test_events_of_a_redriven_execution_continue_where_the_connection_broke(answering, monkeypatch, is_async):
    """Also right after a failure, which is not the end; a 204 says that nothing is left."""

    def history(*types, first=1):
        lines = b'data: {"eventId": %d, "type": "%s", "time": "t"}\n\n'
        return b"".join(lines % (number, type.encode()) for number, type in enumerate(types, first))

    monkeypatch.setattr("flowserver.client.outages.OUTAGE_PAUSE_SECONDS_MAX", 0.0)
    broken = {"Content-Length": "9999"}
    url, asked = answering(
        (200, broken, history("ExecutionStarted", "ExecutionFailed")),
        (503, {}, b""),
        (200, {}, b": ping\n\n"),
        (200, broken, history("ExecutionRedriven", "ExecutionSucceeded", first=3)),
        (204, {}, b""),
    )
    if is_async:
        async with AsyncClient(url) as client:
            events = [each async for each in client.events("f", "e")]
    else:
        with Client(url) as client:
            events = list(client.events("f", "e"))
    assert [each.event_id for each in events] == [1, 2, 3, 4]
    assert [each[2]["last-event-id"] for each in asked] == ["0", "2", "2", "2", "4"]


LINE_ENDS = "\x0b\x0c\r\n\x1c\x1d\x1e\x85\u2028\u2029"
"""Where `str.splitlines` ends lines, and httpx with it."""


@pytest.mark.parametrize("is_async", [False, True])
async def test_events_hold_characters_that_end_lines_elsewhere(client, server, is_async):
    client.put_flow("greet", GREET)
    name = client.start("greet", {"n": LINE_ENDS, LINE_ENDS: 1}, wait_seconds=5).name
    if is_async:
        async with AsyncClient(server.url) as other:
            events = [each async for each in other.events("greet", name)]
    else:
        events = list(client.events("greet", name))
    assert events[0].detail["input"] == {"n": LINE_ENDS, LINE_ENDS: 1}
    assert events[-1].detail["output"] == {"g": LINE_ENDS}
    assert events == list(client.history("greet", name))


@pytest.mark.parametrize("end", ["\n", "\r", "\r\n"])
def test_lines_of_an_event_stream_end_as_the_standard_says(end):
    """Wherever the stream is cut into pieces; the other ends of lines belong to the text."""
    words = "a \x85\u2028\u2029 é€😀"
    stream = f'id: 1{end}data: {{"eventId": 1,{end}data:"type": "{words}", "time": "t"}}{end}{end}: ping{end}'.encode()
    for size in (1, 2, 3, 7, len(stream)):
        feed = Feed("f", "e", 0, 0.0, 0)
        feed.request()
        pieces = [stream[start : start + size] for start in range(0, len(stream), size)]
        lines = [line for piece in pieces for line in feed.lines(piece)]
        assert lines[-1] == ": ping"
        (found,) = [found for line in lines for found in feed.read(line)]
        assert found.type == words


@pytest.mark.parametrize("is_async", [False, True])
@pytest.mark.parametrize("damaged", [b'{"eventId": 2, "ty', b'{"eventId": "2"}', b"[]"])
async def test_an_event_that_cannot_be_read_twice_is_no_outage(answering, no_pauses, is_async, damaged):
    first = b'data: {"eventId": 1, "type": "ExecutionStarted", "time": "t"}\n\n: ping\n\n'
    url, asked = answering((200, {}, first + b"data: " + damaged + b"\n\n"))
    with pytest.raises(Unreadable, match="the event after event 1 cannot be read: "):
        if is_async:
            async with AsyncClient(url) as client:
                [each async for each in client.events("f", "e")]
        else:
            with Client(url) as client:
                list(client.events("f", "e"))
    assert [each[2]["last-event-id"] for each in asked] == ["0", "1"]


def test_another_program_answers(answering):
    for content in (b"<html>", b"[]", b'{"name": 1}'):
        url, _ = answering((200, {}, content))
        with Client(url) as client, pytest.raises(Unreachable):
            client.get_execution("f", "e")


def test_help_shows_what_a_caller_gives_and_gets():
    shown = str(inspect.signature(Client.start))
    assert shown.startswith("(self, /, flow: str, input: ")
    assert shown.endswith("-> flowserver.client.results.Execution")
    assert inspect.signature(AsyncClient.start) == inspect.signature(Client.start)
    assert inspect.signature(Client.flows).return_annotation == Iterator[Flow]
    assert inspect.signature(AsyncClient.tasks).return_annotation == AsyncIterator[Task]


def test_a_repeated_bulk_redrive_redrives_nothing_twice(client, monkeypatch):
    """The execution has failed again when the repeat of the request arrives."""
    client.put_flow("fails", "version: v1\ntype: flow\nsteps:\n  - {type: fail, name: x, error: E}\n")
    client.start("fails", name="f", wait_seconds=5)
    plan = client.plan_redrive("fails", "f")
    assert (plan.redrivable, plan.reasons, plan.failed_count, plan.again[0].path) == (True, [], 1, "x")
    send = client._http.request

    def lose(**arguments):
        send(**arguments)
        monkeypatch.setattr(client._http, "request", send)
        while not client.get_execution("fails", "f", wait_seconds=5).ended:
            pass
        raise httpx.ReadError("reset")

    monkeypatch.setattr(client._http, "request", lose)
    monkeypatch.setattr("time.sleep", lambda _: None)
    answer = client.redrive_many("fails")
    assert (answer.executions, answer.repeated) == ([], ["f"])
    assert client.get_execution("fails", "f").redrive_count == 1
