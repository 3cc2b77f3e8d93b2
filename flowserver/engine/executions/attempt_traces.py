"""Spans of executions and of the attempts of their tasks, made after the commits that end them.

A span is made of the history: the event that began an attempt gives its id and its beginning. The engine remembers the
attempts that it has seen begin; those of other nodes, and of the time before a restart, are read from the history.
"""

import logging
from collections.abc import Coroutine, Iterable
from contextlib import closing
from functools import partial
from typing import Any, Final

from cachetools import LRUCache
from sqlalchemy import Connection

from flowserver.base.span_ids import STARTED, SpanRef, write_traceparent
from flowserver.engine.reads.lookup_reader import Reader
from flowserver.machine.attempts_under_way import OUTCOMES, Begun, EndedAttempt
from flowserver.machine.event_details import facts_of
from flowserver.machine.events import Event, EventType
from flowserver.machine.state import Execution, Status
from flowserver.metrics.process_metrics import Metrics
from flowserver.store.executions.history import scan_history
from flowserver.store.executions.saving import Changes
from flowserver.tracing.spans import FinishedSpan, Tracer

log = logging.getLogger(__name__)

REMEMBERED_MAX: Final = 10_000
"""Attempts that have ended, and callers of starts, that are remembered; for others the history is read, or no link
made."""

LOOK_UPS_MAX: Final = 1_000
"""Attempts whose beginning is being read at once; the spans of further ones are dropped."""

NS: Final = 1_000_000

LATER: Final = OUTCOMES.keys() | {EventType.TASK_SUBMITTED}
"""Events of an attempt after its TaskStarted."""

ERROR_CHARACTERS: Final = 128


class AttemptTraces:
    """Makes the spans of what was committed here."""

    def __init__(self, tracer: Tracer, reader: Reader, metrics: Metrics) -> None:
        self.tracer = tracer
        self._reader = reader
        metrics.spans.dropped = lambda: tracer.dropped
        self._ended: LRUCache[tuple[str, int], Begun] = LRUCache(REMEMBERED_MAX)
        self._starters: LRUCache[str, SpanRef] = LRUCache(REMEMBERED_MAX)
        self._looking = 0

    def traceparent(self, execution_id: str, started_event_id: int) -> str:
        """The header for what the attempt that began with this event calls."""
        return write_traceparent(self.tracer.ref_of(execution_id, started_event_id))

    def note_starter(self, execution_id: str, starter: SpanRef) -> None:
        """The execution is about to be started by this span, to which the span of its start will have a link."""
        self._starters[execution_id] = starter

    async def attempt_ended_by(self, execution_id: str, event_id: int) -> SpanRef | None:
        """The span of the attempt that this committed event ended; None if the history does not show it."""
        begun = self._ended.get((execution_id, event_id))
        if begun is None:
            try:
                begun = await self._reader.ask(partial(find_beginning, execution_id=execution_id, event_id=event_id))
            except Exception as error:
                which = {"execution_id": execution_id, "error": error}
                log.warning("an attempt of execution %(execution_id)s cannot be read: %(error)s", which)
        return None if begun is None else self.tracer.ref_of(execution_id, begun.event_id)

    def committed(
        self, changes: Changes, ended: Iterable[EndedAttempt], now_ms: int
    ) -> list[Coroutine[Any, Any, None]]:
        """A commit has changed an execution, and ended these attempts of it.

        Returns look-ups to run in the background, which raise nothing.
        """
        execution = changes.stored.execution
        if changes.is_new:
            self._add_execution(execution, "start", STARTED, execution.started_at, now_ms)
        look_ups = [look_up for attempt in ended if (look_up := self._see(execution, attempt)) is not None]
        if not execution.is_running and changes.events:
            last = changes.events[-1]
            self._add_execution(execution, "end", last.event_id, last.time_ms, now_ms)
        return look_ups

    def _see(self, execution: Execution, attempt: EndedAttempt) -> Coroutine[Any, Any, None] | None:
        event, begun = attempt
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
        find = partial(find_beginning, execution_id=execution_id, event_id=event.schedule_event_id)
        try:
            begun = await self._reader.ask(find)
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
        self._ended[execution_id, event.event_id] = begun
        error = None if event.type is EventType.TASK_SUCCEEDED else str(facts_of(event).error or "")[:ERROR_CHARACTERS]
        self.tracer.add(
            FinishedSpan(
                name=event.step_name,
                kind="client",
                ref=self.tracer.ref_of(execution_id, begun.event_id),
                parent=self.tracer.ref_of(execution_id, STARTED),
                start_ns=begun.time_ms * NS,
                end_ns=event.time_ms * NS,
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
        starter = self._starters.pop(execution.execution_id, None) if is_start else None
        self.tracer.add(
            FinishedSpan(
                name=f"{what} {execution.flow_name}",
                kind="internal",
                ref=root if is_start else self.tracer.ref_of(execution.execution_id, event_id),
                parent=None if is_start else root,
                start_ns=start_ms * NS,
                end_ns=max(start_ms, end_ms) * NS,
                links=() if starter is None else (starter,),
                attributes=names if is_start else names | {"flowserver.status": str(execution.status)},
                error=error,
            )
        )


def find_beginning(connection: Connection, execution_id: str, event_id: int) -> Begun | None:
    """The TaskStarted of the attempt that this event belongs to; None if the history does not show it."""
    while True:
        with closing(scan_history(connection, execution_id, from_event_id=event_id)) as events:
            event = next(events, None)
        if event is None or event.event_id != event_id:
            return None
        if event.type is EventType.TASK_STARTED:
            return Begun(event_id, event.time_ms)
        if event.type not in LATER:
            return None
        event_id = event.schedule_event_id


def _names(execution_id: str, flow_name: str) -> dict[str, str | int]:
    return {"flowserver.execution_id": execution_id, "flowserver.flow": flow_name}
