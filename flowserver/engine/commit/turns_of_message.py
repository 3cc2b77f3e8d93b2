"""The turns of one message, and how much they write. Rows that a turn needs are loaded before the next turn."""

from collections.abc import Iterable

from sqlalchemy import Connection

from flowserver.language.graph import Flow
from flowserver.machine.advance import advance
from flowserver.machine.mappings import Environment
from flowserver.machine.messages import Continue, Message
from flowserver.machine.turn import Turn
from flowserver.store.executions.history_parts import KnownParts
from flowserver.store.executions.loading import load_finished, lock_versions
from flowserver.store.executions.saving_headers import VersionConflict
from flowserver.store.executions.stored_execution import StoredExecution


def make_turns(
    connection: Connection,
    flow: Flow,
    stored: StoredExecution,
    message: Message,
    environment: Environment,
) -> list[Turn]:
    """Deliver a message to an execution. The first turn has the outcome; each further one makes the next join.

    Raises VersionConflict if another node has changed the execution since it was loaded.
    """
    turns = [advance(flow, stored.execution, message, environment)]
    while turns[-1].wanted:
        try:
            load_finished(connection, stored, turns[-1].wanted)
        except ValueError:
            execution_id = stored.execution.execution_id
            if lock_versions(connection, [execution_id]).get(execution_id) != stored.version:
                raise VersionConflict from None
            raise
        turns.append(advance(flow, stored.execution, Continue(), environment))
    return turns


def history_bytes(turns: Iterable[Turn], known: KnownParts) -> int:
    """Bytes that the turns add to the history: their events, and large values that are not stored yet."""
    size = 0
    for turn in turns:
        size += sum(len(event.detail) for event in turn.events)
        if turn.part_bytes:
            shown = {id(part.value): part.value for event in turn.events for part in event.parts}
            size += sum(turn.part_bytes[key] for key, value in shown.items() if known.find(value) is None)
    return size
