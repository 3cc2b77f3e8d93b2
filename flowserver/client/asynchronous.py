"""The client for asyncio: it does the I/O of conversations."""

import asyncio
import functools
from collections.abc import AsyncIterator, Awaitable, Callable
from types import TracebackType
from typing import Concatenate, ParamSpec, Self, TypeVar

import httpx

from flowserver.client import calls, waiting
from flowserver.client import definitions as definition_calls
from flowserver.client import queues as queue_calls
from flowserver.client import redrives as redrive_calls
from flowserver.client import schedules as schedule_calls
from flowserver.client import secrets as secret_calls
from flowserver.client import server as server_calls
from flowserver.client import versions as version_calls
from flowserver.client.connections import answer_of, arguments_of, options_of, refusal_of, unreachable
from flowserver.client.errors import ClientError, Unreadable
from flowserver.client.event_streams import Feed
from flowserver.client.exchanges import NO_CONTENT, RETRIES, Conversation, Pause, with_retries
from flowserver.client.listings import Listing, page_of
from flowserver.client.method_signatures import as_method
from flowserver.client.outages import OUTAGE_SECONDS
from flowserver.client.results import Event, Result

P = ParamSpec("P")
T = TypeVar("T")
R = TypeVar("R", bound=Result)


def _awaiting(call: Callable[P, Conversation[T]]) -> "Callable[Concatenate[AsyncClient, P], Awaitable[T]]":
    @functools.wraps(call)
    async def method(self: "AsyncClient", /, *arguments: P.args, **options: P.kwargs) -> T:
        return await self.converse(call(*arguments, **options))

    as_method(method, call)
    return method


def _async_listing(listing: Callable[P, Listing[R]]) -> "Callable[Concatenate[AsyncClient, P], AsyncIterator[R]]":
    @functools.wraps(listing)
    def method(self: "AsyncClient", /, *arguments: P.args, **options: P.kwargs) -> AsyncIterator[R]:
        return self.items(listing(*arguments, **options))

    as_method(method, listing, AsyncIterator)
    return method


class AsyncClient:
    """The same for asyncio: calls are coroutines, listings and `events` asynchronous iterators."""

    def __init__(
        self, url: str, token: str | None = None, *, ca_file: str | None = None, retries: int = RETRIES
    ) -> None:
        self._url = url
        self._retries = retries
        self._http = httpx.AsyncClient(**options_of(url, token, ca_file))

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: type[BaseException] | BaseException | TracebackType | None) -> None:
        await self.close()

    async def close(self) -> None:
        """Close the connections."""
        await self._http.aclose()

    async def converse(self, conversation: Conversation[T]) -> T:
        """Have a conversation with the server."""
        steps = with_retries(conversation, self._retries)
        try:
            wanted = next(steps)
            while True:
                if isinstance(wanted, Pause):
                    await asyncio.sleep(wanted.seconds)
                    wanted = next(steps)
                    continue
                try:
                    response = await self._http.request(**arguments_of(wanted))
                except (httpx.HTTPError, httpx.InvalidURL) as error:
                    wanted = steps.throw(unreachable(self._url, error))
                else:
                    wanted = steps.send(answer_of(response))
        except StopIteration as end:
            return end.value  # type: ignore[no-any-return] # what the conversation returns

    async def items(self, listing: Listing[R]) -> AsyncIterator[R]:
        """All items of a listing, page by page."""
        token: str | None = None
        while True:
            page = await self.converse(page_of(listing, token))
            for item in page.items:
                yield item
            token = page.next_token
            if token is None:
                return

    async def events(
        self,
        flow: str,
        name: str,
        *,
        after: int = 0,
        on_silence: Callable[[], Awaitable[object]] | None = None,
        outage_seconds: float = OUTAGE_SECONDS,
    ) -> AsyncIterator[Event]:
        """The history of an execution, past and to come, until the execution has ended.

        A connection that breaks is made again, and goes on where it broke; raises Unreachable once the server has been
        away for `outage_seconds`, and Unreadable if an event cannot be read twice. `on_silence` is awaited again and
        again while nothing happens, every few seconds: an execution that the server parks has no event of it.
        """
        feed = Feed(flow, name, after, outage_seconds, self._retries)
        while True:
            error: ClientError | None = None
            try:
                async with self._http.stream(**arguments_of(feed.request())) as response:
                    if response.status_code == NO_CONTENT:
                        return
                    if response.is_success:
                        async for piece in response.aiter_bytes():
                            for line in feed.lines(piece):
                                for event in feed.read(line):
                                    yield event
                                if on_silence is not None and feed.is_silent(line):
                                    await on_silence()
                        if feed.ended:
                            return
                    else:
                        await response.aread()
                        error = refusal_of(response)
            except Unreadable as unreadable:
                error = unreadable
            except httpx.HTTPError as broken:
                error = unreachable(self._url, broken)
            await asyncio.sleep(feed.broken(error))

    start = _awaiting(calls.start)
    wait = _awaiting(waiting.wait)
    get_execution = _awaiting(calls.get_execution)
    executions = _async_listing(calls.executions)
    steps = _async_listing(calls.steps)
    iterations = _async_listing(calls.iterations)
    history = _async_listing(calls.history)
    stop = _awaiting(calls.stop)
    restart = _awaiting(calls.restart)
    redrive = _awaiting(redrive_calls.redrive)
    plan_redrive = _awaiting(redrive_calls.plan_redrive)
    redrive_many = _awaiting(redrive_calls.redrive_many)
    flows = _async_listing(calls.flows)
    get_flow = _awaiting(calls.get_flow)
    put_flow = _awaiting(calls.put_flow)
    update_flow = _awaiting(calls.update_flow)
    patch_flow = _awaiting(calls.patch_flow)
    delete_flow = _awaiting(calls.delete_flow)
    validate = _awaiting(definition_calls.validate)
    draw_definition = _awaiting(definition_calls.draw_definition)
    test_definition = _awaiting(definition_calls.test_definition)
    functions = _async_listing(calls.functions)
    get_function = _awaiting(calls.get_function)
    put_function = _awaiting(calls.put_function)
    delete_function = _awaiting(calls.delete_function)
    secrets = _async_listing(secret_calls.secrets)
    get_secret = _awaiting(secret_calls.get_secret)
    put_secret = _awaiting(secret_calls.put_secret)
    delete_secret = _awaiting(secret_calls.delete_secret)
    change_invocation = _awaiting(calls.change_invocation)
    tasks = _async_listing(calls.tasks)
    succeed_task = _awaiting(calls.succeed_task)
    fail_task = _awaiting(calls.fail_task)
    parked_invocations = _async_listing(calls.parked_invocations)
    ready = _awaiting(calls.ready)
    readiness = _awaiting(calls.readiness)
    metrics = _awaiting(calls.metrics)
    overview = _awaiting(server_calls.overview)
    permissions = _awaiting(server_calls.permissions)
    nodes = _async_listing(server_calls.nodes)
    keys = _async_listing(server_calls.keys)
    audit = _async_listing(server_calls.audit)
    functions_health = _async_listing(server_calls.functions_health)
    function_health = _awaiting(server_calls.function_health)
    schedules = _async_listing(schedule_calls.schedules)
    get_schedule = _awaiting(schedule_calls.get_schedule)
    create_schedule = _awaiting(schedule_calls.create_schedule)
    put_schedule = _awaiting(schedule_calls.put_schedule)
    update_schedule = _awaiting(schedule_calls.update_schedule)
    delete_schedule = _awaiting(schedule_calls.delete_schedule)
    pause_schedule = _awaiting(schedule_calls.pause_schedule)
    resume_schedule = _awaiting(schedule_calls.resume_schedule)
    trigger_schedule = _awaiting(schedule_calls.trigger_schedule)
    backfill_schedule = _awaiting(schedule_calls.backfill_schedule)
    versions = _async_listing(version_calls.versions)
    get_version = _awaiting(version_calls.get_version)
    publish_version = _awaiting(version_calls.publish_version)
    delete_version = _awaiting(version_calls.delete_version)
    aliases = _async_listing(version_calls.aliases)
    get_alias = _awaiting(version_calls.get_alias)
    create_alias = _awaiting(version_calls.create_alias)
    put_alias = _awaiting(version_calls.put_alias)
    update_alias = _awaiting(version_calls.update_alias)
    delete_alias = _awaiting(version_calls.delete_alias)
    queues = _async_listing(queue_calls.queues)
    get_queue = _awaiting(queue_calls.get_queue)
    peek_messages = _awaiting(queue_calls.peek_messages)
    send_message = _awaiting(queue_calls.send_message)
    purge_queue = _awaiting(queue_calls.purge_queue)
    topics = _async_listing(queue_calls.topics)
    get_topic = _awaiting(queue_calls.get_topic)
    publish_message = _awaiting(queue_calls.publish_message)
