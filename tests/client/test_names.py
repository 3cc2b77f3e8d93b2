"""Names that cannot be one segment of a path are refused before anything is sent: they would lead elsewhere."""

import inspect
from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from flowserver.client import AsyncClient, Client, NameInvalid

ADDRESS = "http://127.0.0.1:1"
IN_PATHS = ("flow", "name", "version", "queue", "topic", "invocation_id")
NOT_IN_PATHS = {("create_schedule", "name"), ("create_alias", "name"), ("tasks", "flow")}
"""Names in bodies and queries: the server checks them."""

VALUES = {"flow": "f", "name": "n", "version": 1, "queue": "q", "topic": "t", "invocation_id": "i"}


def _calls() -> Iterator[tuple[str, str, dict[str, Any]]]:
    """Each method and name in its path, with arguments that are fine but for that."""
    for method, function in inspect.getmembers(Client, inspect.isfunction):
        parameters = inspect.signature(function).parameters
        taken = [each for each in parameters if each in IN_PATHS and (method, each) not in NOT_IN_PATHS]
        given = {each: VALUES[each] for each in taken}
        others = (each for each, one in parameters.items() if one.default is one.empty and each != "self")
        given |= {each: {} if each in ("routes", "fields") else "x" for each in others if each not in given}
        for each in taken:
            yield method, each, given


@pytest.fixture
def sent(monkeypatch):
    """The requests that are sent."""
    requests: list[httpx.Request] = []

    def answer(request: httpx.Request) -> httpx.Response:
        requests.append(request)
        return httpx.Response(404)

    def transport(*_: Any, **__: Any) -> httpx.MockTransport:
        return httpx.MockTransport(answer)

    monkeypatch.setattr(httpx.Client, "_init_transport", transport)
    monkeypatch.setattr(httpx.AsyncClient, "_init_transport", transport)
    return requests


@pytest.mark.parametrize(("method", "parameter", "given"), list(_calls()))
async def test_a_name_that_leads_elsewhere_is_not_sent(sent, method, parameter, given):
    for bad in ("a/b/c", "..", "", "a/", "a\n", "\udcff"):
        arguments = {**given, parameter: bad}
        with Client(ADDRESS) as client, pytest.raises(NameInvalid):
            found = getattr(client, method)(**arguments)
            next(iter(found))
        async with AsyncClient(ADDRESS) as client:
            with pytest.raises(NameInvalid):
                found = getattr(client, method)(**arguments)
                await (anext(found) if inspect.isasyncgen(found) else found)
    assert sent == []


def test_all_kinds_of_names_are_walked():
    walked = {(method, parameter) for method, parameter, _ in _calls()}
    assert {
        ("delete_flow", "name"),
        ("events", "flow"),
        ("peek_messages", "queue"),
        ("get_version", "version"),
    } <= walked
    assert {("put_function", "name"), ("get_topic", "name"), ("change_invocation", "invocation_id")} <= walked
    assert {("executions", "flow"), ("delete_schedule", "name"), ("put_alias", "name"), ("redrive", "name")} <= walked


def test_the_message_says_what_it_is_not():
    with Client(ADDRESS) as client:
        with pytest.raises(NameInvalid, match="'a/b' is not a flow's name"):
            client.delete_flow("a/b")
        with pytest.raises(NameInvalid, match="'a/b/c' is not a function's name"):
            client.get_function("a/b/c")
        with pytest.raises(NameInvalid, match="'a/b' is not an alias's name"):
            client.delete_alias("f", "a/b")


def test_other_characters_stay_within_their_segment(sent):
    with Client(ADDRESS) as client, pytest.raises(Exception, match="404"):
        client.get_execution("f?x=1", "a b%2F#é")
    assert sent[0].url.raw_path == b"/v1/flows/f%3Fx%3D1/executions/a%20b%252F%23%C3%A9"
