"""Brings what is due to where it belongs: messages of topics to their subscribers, results to their destinations.

Every node may bring everything; who claims a delivery first, tries it. What arrives inside this server (a queue, a
topic, a function) is handed in by the very commit that deletes the delivery. Everything else arrives at least once:
if this node dies on the way, another tries it again when the claim is over.
"""

import asyncio
import logging
import random
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Final

from sqlalchemy import Connection
from sqlalchemy.exc import SQLAlchemyError

from flowserver.base.clock import Clock
from flowserver.base.errors import FlowServerError
from flowserver.base.limits import Limits
from flowserver.engine.cluster.membership import Membership
from flowserver.engine.commit.committer import Committer
from flowserver.engine.commit.reader import Reader
from flowserver.engine.commit.retry import persist
from flowserver.engine.deliveries.senders import NotSent, Outward
from flowserver.engine.deliveries.target_limits import Targets
from flowserver.engine.due_loop import AT_ONCE, DueLoop
from flowserver.machine.deliveries.destinations import Destination, read_destination
from flowserver.machine.deliveries.retry_strategies import next_attempt_at
from flowserver.store.queues.deliveries import (
    Delivery,
    NewDelivery,
    claim_deliveries,
    delete_delivery,
    insert_deliveries,
    next_delivery_at,
    put_off_delivery,
)
from flowserver.store.sql.errors import reason_of

log = logging.getLogger(__name__)

CLAIM_MS = 10_000
"""By then an attempt has long ended, unless its node has died."""

NOT_SENT_MS = 1_000
"""When to try again what the server could not send."""

Afterwards = Callable[[], None]
"""What is to be done once a commit is durable."""

Inlet = Callable[[Connection, Any, Delivery], Afterwards]
"""Hands a delivery in at a destination of this server, as part of a commit. Raises FlowServerError if it cannot."""

Told = Callable[[Connection, str, str], None]
"""Is told the key of an invocation, and `ARRIVED` or `GIVEN_UP`, as part of a commit."""

ARRIVED: Final = "Succeeded"
GIVEN_UP: Final = "Failed"


class Deliveries(DueLoop):
    """The source of due deliveries, and this node's attempts. Make and use it inside one event loop."""

    name = "deliveries"

    def __init__(
        self,
        reader: Reader,
        committer: Committer,
        outward: Outward,
        clock: Clock,
        membership: Membership,
        limits: Limits,
        chance: Callable[[], float] = random.random,
    ) -> None:
        super().__init__(clock, membership)
        self._reader = reader
        self._committer = committer
        self._outward = outward
        self._places = limits.deliveries_in_flight_max
        self._chance = chance
        self._inlets: dict[type[Any], Inlet] = {}
        self._told: Told = _tell_nobody
        self._under_way: dict[str, asyncio.Task[None]] = {}
        self._targets = Targets(self._places)
        self._is_due = False
        """Whether this node has committed a delivery since the last claim that was due at once."""

    def open(self, kind: type[Any], inlet: Inlet) -> None:
        """Have deliveries to destinations of a kind handed in there."""
        self._inlets[kind] = inlet

    def report_results(self, told: Told) -> None:
        """Have it told what became of the results of invocations, in the commit that ends their deliveries."""
        self._told = told

    @property
    def under_way(self) -> int:
        """How many are just being tried."""
        return len(self._under_way)

    async def drain(self, seconds: float) -> None:
        """Wait for what is under way, then drop the rest: it is tried again when its claim is over."""
        tasks = list(self._under_way.values())
        if not tasks:
            return
        _, pending = await asyncio.wait(tasks, timeout=seconds)
        for task in pending:
            task.cancel()
        if pending:
            await asyncio.wait(pending)

    def deliver_in(self, connection: Connection, new: Sequence[NewDelivery]) -> None:
        """Add deliveries as part of another change; call `note_due` once that is durable.

        Those that are there already, by their ids, stay as they are.
        """
        insert_deliveries(connection, new, self._clock.now_ms())

    def note_due(self, instant_ms: int = AT_ONCE) -> None:
        """As for every source. A delivery that is due at once is claimed without a read before."""
        self._is_due |= instant_ms == AT_ONCE
        super().note_due(instant_ms)

    async def handle_due(self) -> int | None:
        """Claim as many as there are places for and begin them; the end of one makes the loop look again."""
        room = self._places - len(self._under_way)
        if room <= 0:
            return None
        is_due, self._is_due = self._is_due, False
        if not is_due:
            first = await self._reader.ask(partial(next_delivery_at, except_to=self._targets.full))
            if first is None or first > self._clock.now_ms():
                return first
        claimed = await self._committer.write(self._claiming(room))
        for delivery in claimed:
            self._begin(delivery)
        return AT_ONCE if claimed else self.left_at

    def _claiming(self, limit: int) -> Callable[[Connection], list[Delivery]]:
        """The change that claims up to so many, as the targets are now."""
        targets = self._targets
        under_way, failing, failing_room = targets.under_way, targets.failing, targets.failing_room

        def claim(connection: Connection) -> list[Delivery]:
            now = self._clock.now_ms()
            return claim_deliveries(
                connection,
                now,
                now + CLAIM_MS,
                limit,
                under_way,
                targets.each_max,
                failing=failing,
                failing_room=failing_room,
            )

        return claim

    # One delivery

    def _begin(self, delivery: Delivery) -> None:
        if delivery.delivery_id in self._under_way:
            return  # its claim was over before this node knew what came of it
        task = asyncio.create_task(self._bring(delivery), name=f"delivery {delivery.delivery_id}")
        self._under_way[delivery.delivery_id] = task
        self._targets.begin(delivery.target)
        task.add_done_callback(lambda _: self._end(delivery))

    def _end(self, delivery: Delivery) -> None:
        del self._under_way[delivery.delivery_id]
        self._targets.end(delivery.target)
        self.notice()

    async def _bring(self, delivery: Delivery) -> None:
        try:
            failure = await self._attempt(delivery, read_destination(delivery.target))
        except NotSent as error:
            await self._put_back(delivery, str(error))
            return
        except SQLAlchemyError as error:  # if it was handed in after all, there is nothing to put off
            failure = reason_of(error)
        except Exception as error:  # a damaged row, or our bug
            log.exception("delivery %s failed inside the server", delivery.delivery_id)
            failure = f"the server failed: {type(error).__name__}"
        self._targets.note(delivery.target, has_failed=failure is not None)
        if failure is not None:
            await self._put_off(delivery, failure)

    async def _attempt(self, delivery: Delivery, destination: Destination) -> str | None:
        """Bring it; returns why it has not arrived, None if it has, and is deleted."""
        if self._outward.leads_to(destination):
            failure = await self._outward.bring(delivery, destination)
            if failure is None:
                await persist(lambda: self._committer.write(lambda c: self._end_in(c, delivery, ARRIVED)))
            return failure
        inlet = self._inlets.get(type(destination))
        if inlet is None:
            return f"nothing can be delivered to {delivery.target}"
        try:
            afterwards = await self._committer.write(lambda c: self._hand_in(c, inlet, destination, delivery))
        except FlowServerError as error:
            return f"{error.code}: {error.message}"
        afterwards()
        return None

    def _hand_in(
        self, connection: Connection, inlet: Inlet, destination: Destination, delivery: Delivery
    ) -> Afterwards:
        """The delivery goes and what it brings is there in one commit, so it is handed in once."""
        if not self._end_in(connection, delivery, ARRIVED):
            return _nothing
        return inlet(connection, destination, delivery)

    def _end_in(self, connection: Connection, delivery: Delivery, status: str) -> bool:
        """It is over; False if it was before."""
        is_new = delete_delivery(connection, delivery.delivery_id)
        if is_new and delivery.invocation_key is not None:
            self._told(connection, delivery.invocation_key, status)
        return is_new

    async def _put_back(self, delivery: Delivery, reason: str) -> None:
        """There was no attempt: it is tried again soon, with the same number."""
        again_at = self._clock.now_ms() + NOT_SENT_MS
        log.warning("%s waits: %s", _title(delivery), reason)
        await persist(lambda: self._committer.write(lambda c: put_off_delivery(c, delivery, again_at, counts=False)))
        self.note_due(again_at)

    async def _put_off(self, delivery: Delivery, failure: str) -> None:
        now = self._clock.now_ms()
        again_at = next_attempt_at(delivery.strategy, delivery.attempt, now, self._chance())
        if again_at is None:
            log.warning("%s is given up after %d attempts: %s", _title(delivery), delivery.attempt, failure)
            await persist(lambda: self._committer.write(lambda c: self._end_in(c, delivery, GIVEN_UP)))
            return
        log.info("%s is tried again in %d ms: %s", _title(delivery), again_at - now, failure)
        await persist(lambda: self._committer.write(lambda c: put_off_delivery(c, delivery, again_at)))
        self.note_due(again_at)


def _nothing() -> None:
    pass


def _tell_nobody(_connection: Connection, _invocation_key: str, _status: str) -> None:
    pass


def _title(delivery: Delivery) -> str:
    """What people may see of it: not the whole target, whose query may hold secrets."""
    what = f"message {delivery.message_id} of topic {delivery.topic} for {delivery.subscription}"
    return what if delivery.topic else f"the result of invocation {delivery.invocation_key}"
