"""Spans of executions and of the attempts of their tasks, made after the commits that end them.

A span is made of the history: the event that began an attempt gives its id and its beginning. This node remembers the
attempts that it has seen begin; those of other nodes, and of the time before a restart, are read from the history.
"""

import logging
from collections.abc import Coroutine
from contextlib import closing
from functools import partial
from typing import Any, Final, NamedTuple

from cachetools import LRUCache
from sqlalchemy import Connection

from flowserver.engine.reads.lookup_reader import Reader
from flowserver.machine.event_details import facts_of
from flowserver.machine.events import Event, EventType
from flowserver.machine.state import Execution, Status
from flowserver.metrics.process_metrics import Metrics
from flowserver.store.executions.history import scan_history
from flowserver.store.executions.saving import Changes
from flowserver.tracing.span_ids import STARTED
from flowserver.tracing.spans import FinishedSpan, Tracer

log = logging.getLogger(__name__)

REMEMBERED_MAX: Final = 10_000
"""Attempts under way, and callers of starts, that are remembered; for others the history is read, or no link made."""

LOOK_UPS_MAX: Final = 1_000
"""Attempts whose beginning is being read at once; the spans of further ones are dropped."""

ENDS: Final = frozenset(
    {EventType.TASK_SUCCEEDED, EventType.TASK_FAILED, EventType.TASK_TIMED_OUT, EventType.TASK_SUBMIT_FAILED}
)

ERROR_CHARACTERS: Final = 128


class Begun(NamedTuple):
    """The event that began an attempt, and its instant (ms)."""

    event_id: int
    time_ms: int


class AttemptTraces:
    """Makes the spans of what was committed here."""

    def __init__(self, tracer: Tracer, reader: Reader, metrics: Metrics) -> None:
        self.tracer = tracer
        self._reader = reader
        metrics.spans.dropped = lambda: tracer.dropped
        self._begun: LRUCache[tuple[str, int], Begun] = LRUCache(REMEMBERED_MAX)
        self._looking = 0

    def committed(self, changes: Changes, now_ms: int) -> list[Coroutine[Any, Any, None]]:
        """A commit has changed an execution. Returns look-ups to run in the background, which raise nothing."""
        execution = changes.stored.execution
        if changes.is_new:
            self._add_execution(execution, "start", STARTED, execution.started_at, now_ms)
        look_ups = [look_up for event in changes.events if (look_up := self._see(execution, event)) is not None]
        if not execution.is_running and changes.events:
            last = changes.events[-1]
            self._add_execution(execution, "end", last.event_id, last.time_ms, now_ms)
        return look_ups

    def _see(self, execution: Execution, event: Event) -> Coroutine[Any, Any, None] | None:
        key = execution.execution_id, event.event_id
        cause = execution.execution_id, event.schedule_event_id
        if event.type is EventType.TASK_STARTED:
            self._begun[key] = Begun(event.event_id, event.time_ms)
        elif event.type is EventType.TASK_SUBMITTED:
            begun = self._begun.pop(cause, None)
            if begun is not None:
                self._begun[key] = begun
        elif event.type in ENDS:
            begun = self._begun.pop(cause, None)
            if begun is not None:
                self._add_attempt(execution.execution_id, execution.flow_name, event, begun)
            elif self._looking < LOOK_UPS_MAX:
                self._looking += 1
                return self._look_up(execution.execution_id, execution.flow_name, event)
            else:
                self.tracer.lose()
        return None

    async def _look_up(self, execution_id: str, flow_name: str, event: Event) -> None:
        begun = None
        try:
            begun = await self._reader.ask(partial(find_beginning, execution_id=execution_id, event=event))
        except Exception as error:
            which = {"execution_id": execution_id, "error": error}
            log.warning("an attempt of execution %(execution_id)s gets no span: %(error)s", which)
        finally:
            self._looking -= 1
            if begun is None:
                self.tracer.lose()
        if begun is not None:
            self._add_attempt(execution_id, flow_name, event, begun)

    def _add_attempt(self, execution_id: str, flow_name: str, event: Event, begun: Begun) -> None:
        error = None if event.type is EventType.TASK_SUCCEEDED else str(facts_of(event).error or "")[:ERROR_CHARACTERS]
        self.tracer.add(
            FinishedSpan(
                name=event.step_name,
                kind="client",
                ref=self.tracer.ref_of(execution_id, begun.event_id),
                parent=self.tracer.ref_of(execution_id, STARTED),
                start_ms=begun.time_ms,
                end_ms=event.time_ms,
                attributes=_names(execution_id, flow_name)
                | {"flowserver.step": event.step_name, "flowserver.event": str(event.type)},
                error=error,
            )
        )

    def _add_execution(self, execution: Execution, what: str, event_id: int, start_ms: int, end_ms: int) -> None:
        is_start = what == "start"
        root = self.tracer.ref_of(execution.execution_id, STARTED)
        error = None
        if not is_start and execution.status is not Status.SUCCEEDED:
            error = (execution.error or str(execution.status))[:ERROR_CHARACTERS]
        names = _names(execution.execution_id, execution.flow_name)
        self.tracer.add(
            FinishedSpan(
                name=f"{what} {execution.flow_name}",
                kind="internal",
                ref=root if is_start else self.tracer.ref_of(execution.execution_id, event_id),
                parent=None if is_start else root,
                start_ms=start_ms,
                end_ms=max(start_ms, end_ms),
                attributes=names if is_start else names | {"flowserver.status": str(execution.status)},
                error=error,
            )
        )


def find_beginning(connection: Connection, execution_id: str, event: Event) -> Begun | None:
    """The TaskStarted of the attempt that this event ended; None if the history does not show it."""
    cause: Event | None = event
    while cause is not None and cause.type is not EventType.TASK_STARTED:
        if cause is not event and cause.type is not EventType.TASK_SUBMITTED:
            return None
        with closing(scan_history(connection, execution_id, from_event_id=cause.schedule_event_id)) as events:
            cause = next(events, None)
    return None if cause is None else Begun(cause.event_id, cause.time_ms)


def _names(execution_id: str, flow_name: str) -> dict[str, str | int]:
    return {"flowserver.execution_id": execution_id, "flowserver.flow": flow_name}
