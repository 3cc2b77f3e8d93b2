"""The SDKs' processes, and their servers: one without keys, and one with a single key."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from uuid import uuid4

import pytest

from tests.sdk.client import SDKS, Access, Sdk, SdkClient, SdkProcess
from tests.support.access_key import ACCESS_KEY_ID, SECRET, TOKEN, create_database_with_key
from tests.support.function_server import FunctionServer
from tests.support.server import ServerProcess

ASK = """\
version: v1
type: flow
steps:
  - type: task
    name: ask
    resourceArn: acs:fc:::services/sdk/functions/echo
    pattern: waitForCallback
    inputMappings:
      - {target: taskToken, source: $context.task.token}
"""
"""A flow that runs until a report arrives."""

CALL = """\
version: v1
type: flow
steps:
  - type: task
    name: call
    resourceArn: acs:fc:::services/sdk/functions/echo
"""
"""A flow that returns its input."""


@pytest.fixture(scope="session")
def servers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, ServerProcess]]:
    """Both servers, `open` and `keyed`, the latter of two processes; each knows the function `sdk/echo`."""
    folder = tmp_path_factory.mktemp("sdk")
    keyed_url = f"sqlite:///{folder}/keyed.db"
    create_database_with_key(keyed_url)
    with (
        FunctionServer() as functions,
        ServerProcess(f"sqlite:///{folder}/open.db") as open_server,
        ServerProcess(keyed_url, "--processes", "2") as keyed_server,
    ):
        functions.register(open_server.url, "sdk/echo")
        functions.register(keyed_server.url, "sdk/echo", token=TOKEN)
        yield {"open": open_server, "keyed": keyed_server}


@pytest.fixture(scope="session")
def process_of() -> Iterator[Callable[[Sdk], SdkProcess]]:
    """An SDK's process, started by the first test that uses it."""
    running: dict[str, SdkProcess] = {}
    with ExitStack() as stack:

        def find_or_start(sdk: Sdk) -> SdkProcess:
            if sdk.name not in running:
                running[sdk.name] = SdkProcess(sdk)
                stack.callback(running[sdk.name].close)
            return running[sdk.name]

        yield find_or_start


@pytest.fixture(params=SDKS, ids=str)
def sdk(request: pytest.FixtureRequest) -> Sdk:
    """Each SDK in turn."""
    return request.param


@pytest.fixture
def keyed(servers: dict[str, ServerProcess]) -> Access:
    """The server that has one key, and that key."""
    return Access(f"127.0.0.1:{servers['keyed'].port}", ACCESS_KEY_ID, SECRET)


@pytest.fixture
def opened(servers: dict[str, ServerProcess]) -> Access:
    """The server without keys, and credentials that it has never seen."""
    return Access(f"127.0.0.1:{servers['open'].port}", "any", "thing")


@pytest.fixture(params=["opened", "keyed"])
def client(request: pytest.FixtureRequest, sdk: Sdk, process_of: Callable[[Sdk], SdkProcess]) -> SdkClient:
    """Each SDK in turn, with each server in turn."""
    return SdkClient(process_of(sdk), request.getfixturevalue(request.param))


@pytest.fixture
def unique() -> str:
    """An unused name; several tests use one server."""
    return f"n{uuid4().hex}"


@pytest.fixture
def ask(client: SdkClient, unique: str) -> str:
    """The name of a flow that runs until a report arrives."""
    client.call("CreateFlow", Name=unique, Definition=ASK, Description="-", Type="FDL")
    return unique


@pytest.fixture
def client_of(process_of: Callable[[Sdk], SdkProcess], keyed: Access) -> Callable[[str], SdkClient]:
    """A client of the server with keys, by the SDK's name."""
    return lambda name: SdkClient(process_of({sdk.name: sdk for sdk in SDKS}[name]), keyed)
