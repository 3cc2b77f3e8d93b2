"""The application over its own database, and a client for it inside the same process."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import httpx
import pytest

from flowserver.server import Application, create_app
from flowserver.settings import Settings

LOCAL = "http://127.0.0.1:8080"


@pytest.fixture
def app(sqlite_url: str) -> Application:
    """The application; it is not running yet."""
    return create_app(Settings(database_url=sqlite_url, drain_seconds=0))


@pytest.fixture
async def client(app: Application) -> AsyncIterator[httpx.AsyncClient]:
    """A client of the running application."""
    async with app.router.lifespan_context(app), client_of(app) as opened:
        yield opened


@asynccontextmanager
async def client_of(app: Application) -> AsyncIterator[httpx.AsyncClient]:
    transport = httpx.ASGITransport(app, raise_app_exceptions=False)
    async with httpx.AsyncClient(transport=transport, base_url=LOCAL) as opened:
        yield opened
