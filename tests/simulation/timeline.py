"""Simulated time: it moves only to the next instant at which something is due, or slightly further."""

from collections.abc import Sequence
from random import Random

from flowserver.engine.commit.batch_items import Envelope
from flowserver.machine.messages import TimerFired
from flowserver.store.executions.due import next_due
from flowserver.store.schedules.due_schedules import next_turn_at
from tests.simulation.node import Node
from tests.simulation.shared_database import SharedDatabase
from tests.simulation.witness import Witness
from tests.support.clock import ManualClock

FAR_MS = 50_000_000
"""Only deadlines are further away than this."""


class Timeline:
    """Moves the clock and has the nodes look for what is due by the rows."""

    def __init__(self, database: SharedDatabase, clock: ManualClock, witness: Witness, random: Random) -> None:
        self._database = database
        self._clock = clock
        self._witness = witness
        self._random = random

    def advance(self, nodes: Sequence[Node]) -> bool:
        """Advance to the next instant at which something is due, or slightly further. False if that is too far away."""
        ms = self._next_due() - self._clock.now_ms()
        if ms > FAR_MS:
            return False
        self._clock.advance(ms=ms + self._random.choice((0, 0, 1, 500, 3_000)))
        for node in self._random.sample(nodes, 2):
            self._fire(node)
            if node.inbox and self._random.random() < 0.5:
                break
        return True

    def fire_overdue(self, nodes: Sequence[Node]) -> bool:
        """Process what a node left to another, or what was already due when stored. Returns whether there was any."""
        self._clock.advance(seconds=2)
        for node in nodes:
            self._fire(node)
        return any(node.inbox for node in nodes)

    def advance_to_deadline(self, nodes: Sequence[Node]) -> None:
        """Advance to the next deadline, however distant."""
        self._clock.advance(ms=self._next_due() - self._clock.now_ms())
        for node in nodes:
            self._fire(node)

    def _next_due(self) -> int:
        now = self._clock.now_ms()
        with self._database.read() as connection:
            instants = [next_due(connection, now), next_turn_at(connection, now)]
        return min((at for at in instants if at is not None), default=now + 10 * FAR_MS)

    def _fire(self, node: Node) -> None:
        for envelope in node.due():
            if self._may_fire(envelope):
                node.send(envelope)

    def _may_fire(self, envelope: Envelope) -> bool:
        """Whether the message may fire. The time limit of an attempt that will be answered may not: answers arrive in
        any order.
        """
        message = envelope.message
        if not isinstance(message, TimerFired):
            return True
        if self._witness.is_silenced(envelope.execution_id):
            return False
        attempt = self._witness.attempts.get((envelope.execution_id, message.scope_id, message.wait_id))
        return attempt is None or attempt.answer.is_silent
