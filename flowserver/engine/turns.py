"""The turns of one message: what a turn wants of an execution that is not in memory is loaded for the next one."""

from sqlalchemy import Connection

from flowserver.language.graph import Flow
from flowserver.machine.advance import advance
from flowserver.machine.mappings import Environment
from flowserver.machine.messages import Continue, Message
from flowserver.machine.turn import Turn
from flowserver.store.loading import StoredExecution, load_finished


def make_turns(
    connection: Connection, flow: Flow, stored: StoredExecution, message: Message, environment: Environment
) -> list[Turn]:
    """Tell an execution what happened; the first turn has the outcome, each further one makes a join that was next."""
    turns = [advance(flow, stored.execution, message, environment)]
    while turns[-1].wanted:
        load_finished(connection, stored, turns[-1].wanted)
        turns.append(advance(flow, stored.execution, Continue(), environment))
    return turns
