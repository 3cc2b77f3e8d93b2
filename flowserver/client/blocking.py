"""The blocking client: it does the I/O of conversations."""

import functools
import time
from collections.abc import Callable, Iterator
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


def _calling(call: Callable[P, Conversation[T]]) -> "Callable[Concatenate[Client, P], T]":
    @functools.wraps(call)
    def method(self: "Client", /, *arguments: P.args, **options: P.kwargs) -> T:
        return self.converse(call(*arguments, **options))

    as_method(method, call)
    return method


def _listing(listing: Callable[P, Listing[R]]) -> "Callable[Concatenate[Client, P], Iterator[R]]":
    @functools.wraps(listing)
    def method(self: "Client", /, *arguments: P.args, **options: P.kwargs) -> Iterator[R]:
        return self.items(listing(*arguments, **options))

    as_method(method, listing, Iterator)
    return method


class Client:
    """A blocking client, for one thread at a time. Every method raises ClientError.

    `token` is what `flowserver keys create` has shown; `ca_file` holds the certificates to trust, instead of those
    that `SSL_CERT_FILE` names or the system has. A request that may be repeated is, up to `retries` times.
    """

    def __init__(
        self, url: str, token: str | None = None, *, ca_file: str | None = None, retries: int = RETRIES
    ) -> None:
        self._url = url
        self._retries = retries
        self._http = httpx.Client(**options_of(url, token, ca_file))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: type[BaseException] | BaseException | TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        """Close the connections."""
        self._http.close()

    def converse(self, conversation: Conversation[T]) -> T:
        """Have a conversation with the server."""
        steps = with_retries(conversation, self._retries)
        try:
            wanted = next(steps)
            while True:
                if isinstance(wanted, Pause):
                    time.sleep(wanted.seconds)
                    wanted = next(steps)
                    continue
                try:
                    response = self._http.request(**arguments_of(wanted))
                except (httpx.HTTPError, httpx.InvalidURL) as error:
                    wanted = steps.throw(unreachable(self._url, error))
                else:
                    wanted = steps.send(answer_of(response))
        except StopIteration as end:
            return end.value  # type: ignore[no-any-return] # what the conversation returns

    def items(self, listing: Listing[R]) -> Iterator[R]:
        """All items of a listing, page by page."""
        token: str | None = None
        while True:
            page = self.converse(page_of(listing, token))
            yield from page.items
            token = page.next_token
            if token is None:
                return

    def events(
        self,
        flow: str,
        name: str,
        *,
        after: int = 0,
        on_silence: Callable[[], object] | None = None,
        outage_seconds: float = OUTAGE_SECONDS,
    ) -> Iterator[Event]:
        """The history of an execution, past and to come, until the execution has ended.

        A connection that breaks is made again, and goes on where it broke; raises Unreachable once the server has been
        away for `outage_seconds`, and Unreadable if an event cannot be read twice. `on_silence` is called again and
        again while nothing happens, every few seconds: an execution that the server parks has no event of it.
        """
        feed = Feed(flow, name, after, outage_seconds, self._retries)
        while True:
            error: ClientError | None = None
            try:
                with self._http.stream(**arguments_of(feed.request())) as response:
                    if response.status_code == NO_CONTENT:
                        return
                    if response.is_success:
                        for piece in response.iter_bytes():
                            for line in feed.lines(piece):
                                yield from feed.read(line)
                                if on_silence is not None and feed.is_silent(line):
                                    on_silence()
                        if feed.ended:
                            return
                    else:
                        response.read()
                        error = refusal_of(response)
            except Unreadable as unreadable:
                error = unreadable
            except httpx.HTTPError as broken:
                error = unreachable(self._url, broken)
            time.sleep(feed.broken(error))

    start = _calling(calls.start)
    wait = _calling(waiting.wait)
    get_execution = _calling(calls.get_execution)
    executions = _listing(calls.executions)
    steps = _listing(calls.steps)
    iterations = _listing(calls.iterations)
    history = _listing(calls.history)
    stop = _calling(calls.stop)
    restart = _calling(calls.restart)
    redrive = _calling(redrive_calls.redrive)
    plan_redrive = _calling(redrive_calls.plan_redrive)
    redrive_many = _calling(redrive_calls.redrive_many)
    flows = _listing(calls.flows)
    get_flow = _calling(calls.get_flow)
    put_flow = _calling(calls.put_flow)
    update_flow = _calling(calls.update_flow)
    patch_flow = _calling(calls.patch_flow)
    delete_flow = _calling(calls.delete_flow)
    validate = _calling(definition_calls.validate)
    draw_definition = _calling(definition_calls.draw_definition)
    test_definition = _calling(definition_calls.test_definition)
    functions = _listing(calls.functions)
    get_function = _calling(calls.get_function)
    put_function = _calling(calls.put_function)
    delete_function = _calling(calls.delete_function)
    secrets = _listing(secret_calls.secrets)
    get_secret = _calling(secret_calls.get_secret)
    put_secret = _calling(secret_calls.put_secret)
    delete_secret = _calling(secret_calls.delete_secret)
    change_invocation = _calling(calls.change_invocation)
    tasks = _listing(calls.tasks)
    succeed_task = _calling(calls.succeed_task)
    fail_task = _calling(calls.fail_task)
    parked_invocations = _listing(calls.parked_invocations)
    ready = _calling(calls.ready)
    readiness = _calling(calls.readiness)
    metrics = _calling(calls.metrics)
    overview = _calling(server_calls.overview)
    permissions = _calling(server_calls.permissions)
    nodes = _listing(server_calls.nodes)
    keys = _listing(server_calls.keys)
    audit = _listing(server_calls.audit)
    functions_health = _listing(server_calls.functions_health)
    function_health = _calling(server_calls.function_health)
    schedules = _listing(schedule_calls.schedules)
    get_schedule = _calling(schedule_calls.get_schedule)
    create_schedule = _calling(schedule_calls.create_schedule)
    put_schedule = _calling(schedule_calls.put_schedule)
    update_schedule = _calling(schedule_calls.update_schedule)
    delete_schedule = _calling(schedule_calls.delete_schedule)
    pause_schedule = _calling(schedule_calls.pause_schedule)
    resume_schedule = _calling(schedule_calls.resume_schedule)
    trigger_schedule = _calling(schedule_calls.trigger_schedule)
    backfill_schedule = _calling(schedule_calls.backfill_schedule)
    versions = _listing(version_calls.versions)
    get_version = _calling(version_calls.get_version)
    publish_version = _calling(version_calls.publish_version)
    delete_version = _calling(version_calls.delete_version)
    aliases = _listing(version_calls.aliases)
    get_alias = _calling(version_calls.get_alias)
    create_alias = _calling(version_calls.create_alias)
    put_alias = _calling(version_calls.put_alias)
    update_alias = _calling(version_calls.update_alias)
    delete_alias = _calling(version_calls.delete_alias)
    queues = _listing(queue_calls.queues)
    get_queue = _calling(queue_calls.get_queue)
    peek_messages = _calling(queue_calls.peek_messages)
    send_message = _calling(queue_calls.send_message)
    purge_queue = _calling(queue_calls.purge_queue)
    topics = _listing(queue_calls.topics)
    get_topic = _calling(queue_calls.get_topic)
    publish_message = _calling(queue_calls.publish_message)
