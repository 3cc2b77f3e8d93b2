"""The composition root: settings in, a running application out."""

import asyncio
import logging
import math
import re
from collections.abc import AsyncIterator, Coroutine, Iterator, Mapping
from contextlib import ExitStack, asynccontextmanager, contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, Final

from filelock import FileLock, Timeout
from starlette.applications import Starlette
from starlette.datastructures import State
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from flowserver.api import monitoring
from flowserver.api.console import Console
from flowserver.api.console import fault_response as console_fault_response
from flowserver.api.fc.answers import fault_response
from flowserver.api.keyless_gate import KeylessGate
from flowserver.api.middleware import TRACER, FaultResponse, LargeAnswers, RequestFrame
from flowserver.api.mns.answers import fault_response as mns_fault_response
from flowserver.api.rpc.local_actions import LocalActions
from flowserver.api.rpc.router import RpcRoute
from flowserver.base.clock import Clock, SystemClock
from flowserver.base.default_database import default_database_url
from flowserver.base.encryption import CannotDecrypt, Encryption
from flowserver.base.lazy_import import load
from flowserver.base.limits import Limits
from flowserver.base.signed_messages import read_signer
from flowserver.base.task_tokens import TaskTokens
from flowserver.concurrency.futures import shared
from flowserver.concurrency.threads import run_aside
from flowserver.engine.cluster.lease import new_node_id
from flowserver.engine.engine import Engine
from flowserver.engine.options import EngineOptions
from flowserver.invokers.brokers import Outlet, read_outlets
from flowserver.invokers.deferred_http import DeferredInvoker
from flowserver.invokers.forbidden_addresses import AddressRules
from flowserver.invokers.network_lists import read_network_list
from flowserver.invokers.outgoing import Outgoing
from flowserver.machine.retention_rules import Rules
from flowserver.metrics.request_counts import RequestMetrics
from flowserver.operations.audit_retention import AuditRetention
from flowserver.operations.operations import Operations, Place
from flowserver.settings import Settings
from flowserver.store.access_keys import remember_keys
from flowserver.store.schema.revision import require_current_schema
from flowserver.store.sql.database import Database, parse_url
from flowserver.store.task_token_keys import read_task_token_keys
from flowserver.tracing.spans import Tracer, tracer_maker

log = logging.getLogger(__name__)

RPC_PATH = "/"
RPC_METHODS = ("GET", "POST", "HEAD")

FC_PREFIXES = ("/2016-08-15/", "/2021-04-06/")
FC_ROUTE: Final = "flowserver.api.fc.router:FcRoute"

MNS_PATHS = re.compile(r"/(queues|topics)(/|\Z)")
"""Paths of the message service; those about its account have RPC's path."""
MNS_ROUTE: Final = "flowserver.api.mns.router:MnsRoute"


class DatabaseInUse(Exception):
    """Another server process has this SQLite database open."""


class SecretsKeyWrong(Exception):
    """The database's secrets are encrypted with a key that this server does not have."""


class DatabaseFolderMissing(Exception):
    """The SQLite file's folder does not exist, and it is not the default one, which a start creates."""


def create_app(settings: Settings, clock: Clock | None = None) -> "Application":
    """The application; its lifespan opens the database and runs the engine.

    Raises OutletInvalid, NetworkListInvalid, SigningSecretsInvalid and TracingUnavailable. Starting it raises
    DatabaseInUse, SchemaOutdated, SchemaTooNew or SecretsKeyWrong when the database is not to be used so.
    """
    return Application(settings, clock or SystemClock())


class Application(Starlette):
    """RPC, without a framework around it; the console's files; what watches the server; and REST for everything else.

    REST and its framework are loaded for the first request to it: loading them takes about as long as all the rest of
    a start, and executions that wait for this server to come up need neither.
    """

    def __init__(self, settings: Settings, clock: Clock) -> None:
        super().__init__(routes=monitoring.ROUTES, lifespan=_lifespan)
        self.state.settings = settings
        self.state.clock = clock
        self.state.limits = limits = Limits.of(settings.limits)
        self.state.outlets = read_outlets(settings.queues)
        self.state.outgoing = _outgoing(settings)
        self.make_tracer = partial(tracer_maker(settings.tracing), limits.spans_waiting_max)
        self.tracer: Tracer | None = None  # made when it serves
        self.state.is_wide = False  # whether it listens beyond loopback, which is known before the start
        self.state.on_loss = lambda: None  # called once the database is taken away, or the writer has crashed
        self.state.invoker = None  # the engine's own, unless another is set before the start
        self.state.request_metrics = RequestMetrics()
        self.state.counts_of_front = None  # asks the front, if there is one, for its part of the metrics
        self._frame: dict[str, Any] = {
            "metrics": self.state.request_metrics,
            "body_bytes_max": limits.request_bytes_max,
            "is_leaving": self._is_leaving,
            "large_answers": LargeAnswers(limits.large_answers_max),
        }
        self.add_middleware(RequestFrame, **self._frame)
        self._frame["gate"] = KeylessGate(lambda: self.state.operations.access, settings.allowed_hosts)
        self._files = Console(is_on=settings.console)
        self._console = RequestFrame(
            self._files,
            **self._frame | {"large_answers": LargeAnswers(math.inf)},
            fault_response=console_fault_response,
        )
        self._rpc = RequestFrame(_Rpc(self.state), **self._frame)
        self._fc = RequestFrame(
            _Later(self.state, FC_ROUTE),
            **self._frame | {"body_bytes_max": limits.invocation_payload_bytes_max},
            fault_response=fault_response,
        )
        self._mns = RequestFrame(_Later(self.state, MNS_ROUTE), **self._frame, fault_response=mns_fault_response)
        self._rest: asyncio.Task[Starlette] | None = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        if self.tracer is not None and scope["type"] == "http" and scope["path"] not in monitoring.PATHS:
            scope.setdefault("state", {})[TRACER] = self.tracer
        if scope["type"] == "http" and scope["method"] == "POST" and is_rpc(scope):  # most requests
            await self._rpc(scope, receive, send)
        elif scope["type"] != "http" or (scope["path"] in monitoring.PATHS and scope["method"] in monitoring.METHODS):
            await super().__call__(scope, receive, send)
        elif self._files.serves(scope):
            await self._console(scope, receive, send)
        elif is_rpc(scope):
            await self._rpc(scope, receive, send)
        elif scope["path"].startswith(FC_PREFIXES):
            await self._fc(scope, receive, send)
        elif MNS_PATHS.match(scope["path"]) or _is_about_account(scope):
            await self._mns(scope, receive, send)
        else:
            await (await self.rest())(scope, receive, send)

    async def rest(self) -> Starlette:
        """The application that serves REST, loaded if it has not been; it answers for all paths, so it knows all.

        Raises what loading it raises; the next request tries again.
        """
        if self._rest is None or (self._rest.done() and self._rest.exception() is not None):
            self._rest = shared(run_aside(self._load_rest))
        return await asyncio.shield(self._rest)  # which others wait for, too

    def _load_rest(self) -> Starlette:
        rest: Starlette = load("flowserver.api.rest.router:rest_application")(self.state)
        said: FaultResponse = load("flowserver.api.rest.problems:fault_response")
        rest.add_middleware(RequestFrame, **self._frame, fault_response=said, refuses_nul=False)
        rest.router.routes[:0] = [Route(RPC_PATH, _Rpc(self.state), methods=RPC_METHODS), *monitoring.ROUTES]
        return rest

    def _is_leaving(self) -> bool:
        return hasattr(self.state, "engine") and self.state.engine.lease.is_leaving


def is_rpc(scope: Scope) -> bool:
    """Whether it is an RPC request."""
    return scope["path"] == RPC_PATH and scope["method"] in RPC_METHODS and not _is_about_account(scope)


def _is_about_account(scope: Scope) -> bool:
    """Whether the request is a call of the message service, though it has RPC's path."""
    return bool(scope["path"] == RPC_PATH and scope["query_string"].lower().startswith(b"accountmeta"))


class _Rpc:
    """The RPC route of an application, once it serves."""

    def __init__(self, state: State) -> None:
        self._state = state

    def __call__(self, scope: Scope, receive: Receive, send: Send) -> Coroutine[Any, Any, None]:
        route: RpcRoute = self._state.rpc
        return route(scope, receive, send)


class _Later:
    """A protocol's route, loaded for the first request to it; `place` names its class."""

    def __init__(self, state: State, place: str) -> None:
        self._state = state
        self._place = place
        self._route: ASGIApp | None = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if self._route is None:
            make = await run_aside(partial(load, self._place))
            self._route = make(self._state.operations, self._state.engine, self._state.settings.allowed_hosts)
        await self._route(scope, receive, send)


@asynccontextmanager
async def _lifespan(app: Application) -> AsyncIterator[None]:
    settings: Settings = app.state.settings
    with ExitStack() as stack:
        app.tracer = app.make_tracer()
        if app.tracer is not None:
            stack.callback(app.tracer.close)  # last: another server may have the database meanwhile
        app.state.database = database = Database(settings.database_url)
        stack.callback(database.close)
        loop = asyncio.get_running_loop()
        database.on_loss(lambda: loop.call_soon_threadsafe(app.state.on_loss))
        stack.enter_context(sole_use(database))
        require_current_schema(database)
        options = replace(_engine_options(settings, app.state.outlets), tracer=app.tracer)
        engine = Engine(
            database,
            clock=app.state.clock,
            limits=app.state.limits,
            tokens=_task_tokens(database, settings.cell, options.encryption),
            node_id=new_node_id(),
            options=options,
            invoker=app.state.invoker or DeferredInvoker(app.state.limits, app.state.outgoing),
        )
        engine.on_crash = app.state.on_loss
        engine.metrics.registry.register(app.state.request_metrics)
        app.state.engine = engine
        place = Place(settings.region, f"{settings.host}:{settings.port}")
        app.state.operations = Operations.of(
            engine,
            is_wide=app.state.is_wide,
            lenient=settings.lenient,
            place=place,
            addresses=app.state.outgoing.addresses,
            audit_level=settings.audit,
        )
        stack.callback(app.state.operations.close)
        access = app.state.operations.access
        engine.loops += (AuditRetention(engine.context, settings.audit_days),)
        app.state.rpc = RpcRoute(
            LocalActions(app.state.operations), access, engine.clock, settings.allowed_hosts, engine.limits
        )
        async with engine.running(settings.drain_seconds):
            yield
            await access.refusals.close()


@contextmanager
def sole_use(database: Database) -> Iterator[None]:
    """SQLite has one writer: this process. The lock goes with the process, however it ends.

    Raises DatabaseInUse, DatabaseFolderMissing.
    """
    if database.sqlite_file is None:
        yield
        return
    _require_folder(database, database.sqlite_file.parent)
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


def _require_folder(database: Database, folder: Path) -> None:
    """Only the default database's folder is created: another folder that is missing is misspelt or not mounted."""
    if folder == Path(parse_url(default_database_url()).database or "").parent:
        database.make_folder()
    elif not folder.is_dir():
        raise DatabaseFolderMissing(
            f"there is no folder {folder.absolute()} for the database; "
            "create it, or correct --database-url (FLOWSERVER_DATABASE_URL)"
        )


def _outgoing(settings: Settings) -> Outgoing:
    names = ("function_networks_allowed", "function_networks_denied")
    allowed, denied = (read_network_list(name, getattr(settings, name)) for name in names)
    addresses = AddressRules(private=settings.private_functions, allowed=allowed, denied=denied)
    file = settings.signing_secrets_file
    return Outgoing(addresses, None if file in (None, Path()) else read_signer(file))


def _engine_options(settings: Settings, outlets: Mapping[str, Outlet]) -> EngineOptions:
    return EngineOptions(
        missing_source=settings.missing_source,
        child_lifecycle=settings.child_lifecycle,
        rules=Rules(days=settings.retention_days, bytes_max=int(settings.retention_gib * 2**30)),
        outlets=outlets,
        queue_bodies=settings.queue_bodies,
        encryption=Encryption(settings.encryption_keys()),
        disk_reserve_bytes=settings.disk_reserve_mib << 20,
        data_bytes_max=int(settings.data_gib_max * 2**30),
    )


def _task_tokens(database: Database, cell: str, encryption: Encryption) -> TaskTokens:
    with database.write() as connection:
        remember_keys(connection)
        try:
            first, *further = read_task_token_keys(connection, encryption)
        except CannotDecrypt:
            raise SecretsKeyWrong(
                "the secrets of this database are encrypted, and this server has no key that decrypts them: give it "
                "one as FLOWSERVER_SECRETS_KEY or --secrets-key-file; if the key is lost, make a new one and run: "
                "flowserver secrets rekey --secrets-key-file FILE --drop-unreadable"
            ) from None
        return TaskTokens(first, cell, further)
