"""One scenario through REST, RPC and an SDK: the same answers and the same refusals, down to every event."""

import itertools
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import httpx
import pytest

from tests.parity.facades import Actions, Event, Facade, Refused, Rest
from tests.sdk.client import CLASSIC, Access, SdkError, SdkProcess
from tests.support.access_key import ACCESS_KEY_ID, SECRET, TOKEN, create_database_with_key
from tests.support.function_server import FunctionServer
from tests.support.server import ServerProcess

DEFINITION = """\
# ~*+/&=% 中
version: v1
type: flow
steps:
  - type: parallel
    name: both
    branches:
      - steps:
          - {type: task, name: say, resourceArn: acs:fc:::services/parity/functions/echo}
      - steps:
          - {type: pass, name: quiet}
    outputMappings:
      - {target: said, source: "$local[0].text"}
  - type: task
    name: ask
    resourceArn: acs:fc:::services/parity/functions/echo
    pattern: waitForCallback
    timeoutSeconds: 600
    inputMappings:
      - {target: token, source: $context.task.token}
    errorMappings:
      - {target: why, source: $local.error}
    catch:
      - {errors: [Rejected], goto: judge}
  - type: choice
    name: judge
    choices:
      - {condition: $.why == "Rejected", goto: no_}
    default:
      goto: yes_
  - {type: fail, name: no_, error: Refused, cause: by the boss}
  - {type: succeed, name: yes_}
"""
CHILD = "version: v1\ntype: flow\nsteps:\n  - {type: pass, name: p, outputMappings: [{target: by, source: child}]}\n"
INPUT = {"text": "~*+/&=% 中\n", "exact": 12345678901234567890}
WAIT_SECONDS = 30


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    """A server with a key, which knows the function `parity/echo`."""
    database_url = f"sqlite:///{tmp_path_factory.mktemp('parity')}/flows.db"
    create_database_with_key(database_url)
    with ServerProcess(database_url) as running, FunctionServer() as functions:
        functions.register(running.url, "parity/echo", token=TOKEN)
        yield running


@pytest.fixture(scope="module")
def facades(server: ServerProcess) -> Iterator[dict[str, Facade]]:
    """Every interface."""
    process = SdkProcess(CLASSIC)
    access = Access(f"127.0.0.1:{server.port}", ACCESS_KEY_ID, SECRET)

    def by_sdk(action: str, parameters: Any) -> Any:
        try:
            return process.call(access, action, parameters)
        except SdkError as error:
            raise Refused(error.code, error.status) from None

    headers = {"Authorization": f"Bearer {TOKEN}"}
    with httpx.Client(base_url=server.url, headers=headers, trust_env=False, timeout=2 * WAIT_SECONDS) as client:

        def by_hand(action: str, parameters: Any) -> Any:
            response = client.post("/", data={"Action": action, **parameters})
            if response.is_error:
                raise Refused(response.json()["Code"], response.status_code)
            return response.json()

        yield {"rest": Rest(client), "rpc": Actions(by_hand), "sdk": Actions(by_sdk)}
    process.close()


def test_all_interfaces_give_the_same_answers(facades: dict[str, Facade]) -> None:
    stories = {name: list(tell(facade)) for name, facade in facades.items()}
    assert len(stories["rest"]) > 40
    for name in ("rpc", "sdk"):
        for by_rest, by_other in itertools.zip_longest(stories["rest"], stories[name]):
            assert by_other == by_rest, name


def tell(facade: Facade) -> Iterator[Any]:
    """The scenario; yields all answers. It leaves no data behind."""
    yield from flows(facade)
    yield from success(facade)
    yield from failure(facade)
    yield from stopping(facade)
    yield from refusals(facade)
    yield from listing(facade)
    facade.delete_flow("parity")
    facade.delete_flow("parity2")
    yield refusal(facade.describe, "parity", "e1")
    yield facade.list_flows(10, None)


def refusal(call: Callable[..., Any], *arguments: Any) -> tuple[str, int]:
    """The code and the status with which a call is refused."""
    with pytest.raises(Refused) as refused:
        call(*arguments)
    return refused.value.code, refused.value.status


def waiting_token(facade: Facade, name: str) -> str:
    """The token of the execution's task, once the task is submitted."""
    while True:
        events, _ = facade.history("parity", name, 1000, None)
        for event in events:
            if event.type == "TaskSubmitted":
                return event.detail["output"]["token"]


def told(facade: Facade, name: str) -> list[Event]:
    """The whole history, read in pages, without what is another in each execution: its token and request ids."""
    events: list[Event] = []
    token = None
    while True:
        page, token = facade.history("parity", name, 7, token)
        events += page
        if token is None:
            break
    return [replace(event, detail=_without_own(event.detail)) for event in events]


def _without_own(detail: Any) -> Any:
    if isinstance(detail, dict):
        return {key: "..." if key in ("token", "requestId") else _without_own(value) for key, value in detail.items()}
    return detail


def flows(facade: Facade) -> Iterator[Any]:
    yield facade.create_flow("parity", CHILD, "~*+ 中")
    yield facade.update_flow("parity", DEFINITION)
    yield facade.create_flow("parity2", CHILD, "-")
    yield facade.describe_flow("parity")
    yield facade.list_flows(1, None)
    yield facade.list_flows(1, "parity2")


def success(facade: Facade) -> Iterator[Any]:
    yield facade.start("parity", "e1", INPUT)
    yield facade.start("parity", "e1", INPUT)
    token = waiting_token(facade, "e1")
    yield facade.describe("parity", "e1")
    yield facade.succeed(token, {"answer": "~*+ 中", "exact": 2**70})
    yield facade.describe("parity", "e1", WAIT_SECONDS)
    yield told(facade, "e1")
    yield refusal(facade.succeed, token, {})
    yield refusal(facade.fail, token, "E", "c")
    yield refusal(facade.start, "parity", "e1", {})
    yield refusal(facade.stop, "parity", "e1", "E", "c")


def failure(facade: Facade) -> Iterator[Any]:
    yield facade.start("parity", "e2", {})
    yield facade.fail(waiting_token(facade, "e2"), "Rejected", "not this one")
    yield facade.describe("parity", "e2", WAIT_SECONDS)
    yield told(facade, "e2")


def stopping(facade: Facade) -> Iterator[Any]:
    facade.start("parity", "e3", {})
    token = waiting_token(facade, "e3")
    yield facade.stop("parity", "e3", "Enough", "~*+ 中")
    yield told(facade, "e3")
    yield refusal(facade.succeed, token, {})
    facade.start("parity", "e4", {})
    yield facade.start("parity2", "c1", {}, waiting_token(facade, "e4"))
    yield facade.describe("parity", "e4", WAIT_SECONDS)


def refusals(facade: Facade) -> Iterator[Any]:
    yield refusal(facade.create_flow, "parity", CHILD, "-")
    yield refusal(facade.create_flow, "a/b", CHILD, "-")
    yield refusal(facade.create_flow, "x", "version: v1\ntype: flow\nsteps: 3\n", "-")
    yield refusal(facade.create_flow, "x", "steps: [", "-")
    yield refusal(facade.create_flow, "x", CHILD + "#" * 300_000, "-")
    yield refusal(facade.create_flow, "x", "#" * 2_000_000, "-")
    yield refusal(facade.update_flow, "none", CHILD)
    yield refusal(facade.update_flow, "parity", "[]")
    yield refusal(facade.delete_flow, "none")
    yield refusal(facade.describe_flow, "none")
    yield refusal(facade.list_flows, 0, None)
    yield refusal(facade.list_flows, 1001, None)
    yield refusal(facade.start, "none", "e", {})
    yield refusal(facade.start, "parity", "1 2", {})
    yield refusal(facade.start, "parity", "e", [1])
    yield refusal(facade.start, "parity", "e", {"text": "x" * 300_000})
    yield refusal(facade.start, "parity", "e", {}, "forged")
    yield refusal(facade.describe, "none", "e")
    yield refusal(facade.describe, "parity", "none")
    yield refusal(facade.describe, "parity", "e1", 61)
    yield refusal(facade.stop, "parity", "none", "E", "c")
    yield refusal(facade.stop, "parity", "e1", "E" * 129, "c")
    yield refusal(facade.stop, "parity", "e1", "E", "c" * 4097)
    yield refusal(facade.history, "none", "e", 1, None)
    yield refusal(facade.history, "parity", "none", 1, None)
    yield refusal(facade.history, "parity", "e1", 1, "word")
    yield refusal(facade.succeed, "forged", {})
    yield refusal(facade.fail, "forged", "E" * 129, "c")


def listing(facade: Facade) -> Iterator[Any]:
    yield facade.list("parity", None, None, None)
    yield facade.list("parity", "Succeeded", None, None)
    yield facade.list("parity", "Stopped", None, None)
    names, token = facade.list("parity", None, 3, None)
    yield names, str(token).partition("/")[0]  # the rest is the start of that execution
    yield facade.list("parity", None, 3, token)
    yield facade.list("parity", None, 3, "e1")
    yield refusal(facade.list, "none", None, None, None)
    yield refusal(facade.list, "parity", "Odd", None, None)
    yield refusal(facade.list, "parity", None, 101, None)
    yield facade.history("parity", "e1", 10, "9999")
