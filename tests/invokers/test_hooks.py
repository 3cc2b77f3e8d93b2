"""Hooks of functions are retried while the server itself cannot send."""

from collections.abc import Mapping
from dataclasses import replace

import pytest

from flowserver.invokers.calls import Endpoint, Failed, Invocation, Replied, Reply
from flowserver.invokers.hooks import Hooks
from flowserver.invokers.web_requests import WebRequest

ENDPOINT = Endpoint("http://f", {}, 60, initialize_url="http://f/initialize", pre_stop_url="http://f/pre-stop")


class Answers:
    """An invoker whose requests get these answers, one after the other."""

    def __init__(self, *answers: Reply | Failed) -> None:
        self.left = list(answers)
        self.headers: Mapping[str, str] = {}

    async def send(self, request: WebRequest) -> Reply | Failed:
        self.headers = request.headers
        return self.left.pop(0)

    async def exchange(self, invocation: Invocation, endpoint: Endpoint) -> Reply | Failed:
        raise NotImplementedError

    async def invoke(self, invocation: Invocation, endpoint: Endpoint) -> Replied | Failed:
        raise NotImplementedError

    async def close(self) -> None:
        raise NotImplementedError


OUT = Failed("FC.ServerError", "the server has no descriptor left", is_own=True)


async def test_initializing_fails_no_call_for_lack_of_descriptors() -> None:
    answers = Answers(OUT, OUT, Reply(200, {}, b""))
    hooks = Hooks(answers)
    assert await hooks.initialize(ENDPOINT, "r") is None
    assert answers.left == []
    assert hooks.is_initialized(ENDPOINT)


@pytest.mark.parametrize("answer", [Failed("FC.ServerError", "it is not there"), Reply(500, {}, b"")])
async def test_initializing_fails_with_the_function(answer: Reply | Failed) -> None:
    failure = await Hooks(Answers(answer)).initialize(ENDPOINT, "r")
    assert failure is not None
    assert failure.error == "FC.FunctionNotStarted"


@pytest.mark.parametrize("service", ["shop", ""])
async def test_hooks_name_the_function_and_its_service(service: str) -> None:
    answers = Answers(Reply(200, {}, b""))
    await Hooks(answers).initialize(replace(ENDPOINT, registered_as=(service, "charge")), "r")
    named = {name: value for name, value in answers.headers.items() if name.endswith("-Name")}
    expected = {"X-Fc-Function-Name": "charge"} | ({"X-Fc-Service-Name": service} if service else {})
    assert named == expected


async def test_the_stop_hook_is_called_once_it_can_be_sent() -> None:
    answers = Answers(OUT, Reply(200, {}, b""))
    await Hooks(answers).pre_stop(ENDPOINT, "r")
    assert answers.left == []
