from collections.abc import AsyncIterator, Callable

import httpx
import pytest

from flowserver.hosting.functions import HostedFunctions, load_functions
from flowserver.hosting.host_file import HostFile
from flowserver.hosting.http_app import build_app


@pytest.fixture
def host(tmp_path) -> Callable[..., HostedFunctions]:
    """Writes files and loads the functions that the entries name: `host({"a.py": text}, {"s/f": "a.py:handler"})`."""

    def load(files: dict[str, str], functions: dict[str, object]) -> HostedFunctions:
        for name, text in files.items():
            path = tmp_path / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, "utf-8")
        return load_functions(HostFile.model_validate({"functions": functions}), tmp_path)

    return load


@pytest.fixture
async def client_of() -> AsyncIterator[Callable[[HostedFunctions], httpx.AsyncClient]]:
    """A client of the application that hosts the functions."""
    clients: list[httpx.AsyncClient] = []

    def make(hosted: HostedFunctions) -> httpx.AsyncClient:
        transport = httpx.ASGITransport(build_app(hosted))
        clients.append(httpx.AsyncClient(transport=transport, base_url="http://hosting"))
        return clients[-1]

    yield make
    for client in clients:
        await client.aclose()
