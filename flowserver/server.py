"""The composition root: settings in, a running application out."""

import logging
import secrets
from collections.abc import AsyncIterator, Iterator
from contextlib import ExitStack, asynccontextmanager, contextmanager

from fastapi import FastAPI
from filelock import FileLock, Timeout
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from flowserver import __version__
from flowserver.api import watching
from flowserver.api.middleware import RequestFrame
from flowserver.api.rest.router import install
from flowserver.api.rpc.router import RpcRoute
from flowserver.base.clock import Clock, SystemClock
from flowserver.base.limits import Limits
from flowserver.engine.engine import Engine
from flowserver.engine.lease import new_node_id
from flowserver.engine.retention import Rules
from flowserver.engine.tokens import TaskTokens
from flowserver.operations.operations import Operations
from flowserver.settings import Settings
from flowserver.store.database import Database
from flowserver.store.keys import keep_secret
from flowserver.store.schema import check_schema

log = logging.getLogger(__name__)

RPC_PATH = "/"
RPC_METHODS = ("GET", "POST", "HEAD")

TASK_TOKEN_KEY = "task-tokens"  # noqa: S105 - the name of a secret, not one


class DatabaseInUse(Exception):
    """Another server process has this SQLite database open."""


def create_app(settings: Settings, clock: Clock | None = None) -> FastAPI:
    """The application; its lifespan opens the database and runs the engine.

    Starting it raises DatabaseInUse, SchemaOutdated or SchemaTooNew when the database is not to be used so.
    """
    limits = Limits.of(settings.limits)
    app = _Application(
        lifespan=_lifespan, title="flowserver", version=__version__, docs_url=None, redoc_url=None, openapi_url=None
    )
    app.state.settings = settings
    app.state.clock = clock or SystemClock()
    app.state.limits = limits

    def is_leaving() -> bool:
        return hasattr(app.state, "engine") and app.state.engine.lease.is_leaving

    app.rpc = RequestFrame(_Rpc(app), limits.request_bytes_max, is_leaving)
    app.router.routes.append(Route(RPC_PATH, _Rpc(app), methods=RPC_METHODS, include_in_schema=False))
    app.add_middleware(RequestFrame, body_bytes_max=limits.request_bytes_max, is_leaving=is_leaving)
    watching.install(app)
    install(app)
    return app


class _Rpc:
    """The RPC route of an application, once it serves."""

    def __init__(self, app: FastAPI) -> None:
        self._state = app.state

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self._state.rpc(scope, receive, send)


class _Application(FastAPI):
    """The framework's application, beside which RPC is served without the framework; that knows the route, too."""

    rpc: ASGIApp

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        is_rpc = scope["type"] == "http" and scope["path"] == RPC_PATH and scope["method"] in RPC_METHODS
        await (self.rpc if is_rpc else super().__call__)(scope, receive, send)


@asynccontextmanager
async def _lifespan(app: FastAPI) -> AsyncIterator[None]:
    settings: Settings = app.state.settings
    with ExitStack() as stack:
        database = Database(settings.database_url)
        stack.callback(database.close)
        stack.enter_context(sole_use(database))
        check_schema(database)
        engine = Engine(
            database,
            clock=app.state.clock,
            limits=app.state.limits,
            missing_source=settings.missing_source,
            tokens=_task_tokens(database),
            node_id=new_node_id(),
            rules=Rules(days=settings.retention_days, bytes_max=int(settings.retention_gib * 2**30)),
        )
        app.state.engine = engine
        app.state.operations = Operations.of(engine)
        app.state.rpc = RpcRoute(app.state.operations, engine, settings.allowed_hosts)
        async with engine.running(settings.drain_seconds):
            yield


@contextmanager
def sole_use(database: Database) -> Iterator[None]:
    """SQLite has one writer: this process. The lock goes with the process, however it ends. Raises DatabaseInUse."""
    if database.sqlite_file is None:
        yield
        return
    database.make_folder()
    # By its real path: under another name of the same file a second server would believe itself alone.
    lock = FileLock(f"{database.sqlite_file.resolve()}.lock", timeout=0, mode=0o600)
    try:
        lock.acquire()
    except Timeout:
        raise DatabaseInUse(f"another flowserver uses this database (it holds {lock.lock_file})") from None
    try:
        yield
    finally:
        lock.release()


def _task_tokens(database: Database) -> TaskTokens:
    with database.write() as connection:
        return TaskTokens(bytes.fromhex(keep_secret(connection, TASK_TOKEN_KEY, secrets.token_hex(32))))
