"""Delivers messages of topics to their subscribers, and results of invocations to their destinations.

Any node may attempt any delivery. It claims the row first, by moving the row's instant on to the end of the claim: no
row names a node, and if this node dies, another one finds the delivery due again. A destination inside this server (a
queue, a topic, a function) receives the delivery in the commit that deletes its row, so exactly once. All others
receive it at least once.
"""

import asyncio
import logging
import random
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Final

from sqlalchemy import Connection
from sqlalchemy.exc import SQLAlchemyError

from flowserver.base.errors import FlowServerError
from flowserver.base.limited_log import LimitedLog
from flowserver.concurrency.shutdown import drain
from flowserver.concurrency.target_limits import TargetLimits
from flowserver.engine.commit.outage_retry import retry_until_available
from flowserver.engine.context import EngineContext
from flowserver.engine.due_loop import AT_ONCE, DueLoop
from flowserver.invokers.remote_destinations import NotSent, Senders
from flowserver.machine.deliveries.destinations import Destination, read_destination
from flowserver.machine.deliveries.retry_strategies import next_attempt_at
from flowserver.store.invocations.rows import set_destination_status
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
"""Length of a claim: far more than an attempt takes."""

NOT_SENT_MS = 1_000
"""Pause before a delivery is attempted again that the server could not send."""

Afterwards = Callable[[], None]
"""Is called once a commit is durable."""

Receiver = Callable[[Connection, Any, Delivery], Afterwards]
"""Passes a delivery to a destination inside this server, in a commit. Raises FlowServerError if it cannot."""

ARRIVED: Final = "Succeeded"
GIVEN_UP: Final = "Failed"


class DeliveryWorker(DueLoop):
    """The source of due deliveries, and this node's attempts. Make and use it inside one event loop."""

    name = "deliveries"

    def __init__(self, context: EngineContext, outward: Senders, chance: Callable[[], float] = random.random) -> None:
        super().__init__(context.clock, context.membership)
        self._reader = context.reader
        self._committer = context.committer
        self._outward = outward
        self._slots = context.limits.deliveries_in_flight_max
        self._chance = chance
        self._receivers: dict[type[Any], Receiver] = {}
        self._under_way: dict[str, asyncio.Task[None]] = {}
        self._targets = TargetLimits(self._slots)
        self._failures = LimitedLog(log)
        self._is_due = False
        """Whether this node has committed a delivery since the last claim that was due at once."""

    def open(self, kind: type[Any], receiver: Receiver) -> None:
        """Pass deliveries to destinations of this kind to `receiver`."""
        self._receivers[kind] = receiver

    @property
    def under_way(self) -> int:
        """Number of attempts under way."""
        return len(self._under_way)

    async def drain(self, seconds: float) -> None:
        """Wait for the attempts under way, then cancel the rest: they are repeated when their claims end."""
        await drain(list(self._under_way.values()), seconds)

    def deliver_in(self, connection: Connection, new: Sequence[NewDelivery]) -> None:
        """Add deliveries as part of another change; call `note_due` once that is durable.

        A delivery whose id exists stays as it is.
        """
        insert_deliveries(connection, new, self._clock.now_ms())

    def note_due(self, instant_ms: int = AT_ONCE) -> None:
        """As for every source. The next iteration claims a delivery that is due at once without reading first."""
        self._is_due |= instant_ms == AT_ONCE
        super().note_due(instant_ms)

    async def handle_due(self) -> int | None:
        """Claim as many deliveries as may be under way, and begin them. The loop looks again when an attempt ends."""
        room = self._slots - len(self._under_way)
        if room <= 0:
            return None
        is_due, self._is_due = self._is_due, False
        if not is_due:
            first = await self._reader.ask(partial(next_delivery_at, skipped=self._targets.full))
            if first is None or first > self._clock.now_ms():
                return first
        claimed = await self._committer.write(self._claiming(room))
        for delivery in claimed:
            self._begin(delivery)
        return AT_ONCE if claimed else self.left_at

    def _claiming(self, limit: int) -> Callable[[Connection], list[Delivery]]:
        """The change that claims up to `limit` deliveries, by what is under way to each target now."""
        targets = self._targets
        claiming = partial(
            claim_deliveries,
            limit=limit,
            under_way=targets.under_way,
            per_target_max=targets.per_target_max,
            failing=targets.failing,
            failing_max=targets.failing_max,
        )

        def claim(connection: Connection) -> list[Delivery]:
            now = self._clock.now_ms()
            return claiming(connection, now, now + CLAIM_MS)

        return claim

    # One delivery

    def _begin(self, delivery: Delivery) -> None:
        if delivery.delivery_id in self._under_way:
            return  # the claim ended before the attempt did
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
        except SQLAlchemyError as error:  # if the commit came through after all, there is no row to put off
            failure = reason_of(error)
        except Exception as error:  # a damaged row, or our bug
            log.exception("delivery %(delivery_id)s failed inside the server", {"delivery_id": delivery.delivery_id})
            failure = f"the server failed: {type(error).__name__}"
        self._targets.note(delivery.target, has_failed=failure is not None)
        if failure is not None:
            await self._put_off(delivery, failure)

    async def _attempt(self, delivery: Delivery, destination: Destination) -> str | None:
        """Make an attempt; returns why it failed, or None if the delivery has arrived and its row is deleted."""
        if self._outward.leads_to(destination):
            failure = await self._outward.bring(delivery.notification, destination)
            if failure is None:
                await retry_until_available(lambda: self._committer.write(lambda c: self._end_in(c, delivery, ARRIVED)))
            return failure
        receiver = self._receivers.get(type(destination))
        if receiver is None:
            return f"nothing can be delivered to {delivery.target}"
        try:
            afterwards = await self._committer.write(lambda c: self._hand_in(c, receiver, destination, delivery))
        except FlowServerError as error:
            return f"{error.code}: {error.message}"
        afterwards()
        return None

    def _hand_in(
        self, connection: Connection, receiver: Receiver, destination: Destination, delivery: Delivery
    ) -> Afterwards:
        """Delete the row and pass the delivery on in one commit, so that it arrives once."""
        if not self._end_in(connection, delivery, ARRIVED):
            return _nothing
        return receiver(connection, destination, delivery)

    def _end_in(self, connection: Connection, delivery: Delivery, status: str) -> bool:
        """Delete the row, and note the status with the invocation whose result it was; returns False if it was gone."""
        is_new = delete_delivery(connection, delivery.delivery_id)
        if is_new and delivery.invocation_key is not None:
            set_destination_status(connection, delivery.invocation_key, status)
        return is_new

    async def _put_back(self, delivery: Delivery, reason: str) -> None:
        """Nothing was sent, so the next attempt has the same number."""
        again_at = self._clock.now_ms() + NOT_SENT_MS
        fields = _log_fields(delivery) | {"error": reason}
        self._failures.write(logging.WARNING, _source(delivery), "%(delivery)s waits: %(error)s", fields)
        await retry_until_available(
            lambda: self._committer.write(lambda c: put_off_delivery(c, delivery, again_at, counts=False))
        )
        self.note_due(again_at)

    async def _put_off(self, delivery: Delivery, failure: str) -> None:
        now = self._clock.now_ms()
        again_at = next_attempt_at(delivery.strategy, delivery.attempt, now, self._chance())
        fields = _log_fields(delivery) | {"error": failure}
        if again_at is None:
            # Not limited: of a topic's message nothing else is left.
            log.warning("%(delivery)s is given up after %(attempt)d attempts: %(error)s", fields)
            await retry_until_available(lambda: self._committer.write(lambda c: self._end_in(c, delivery, GIVEN_UP)))
            return
        fields["pause_ms"] = again_at - now
        form = "%(delivery)s is tried again in %(pause_ms)d ms: %(error)s"
        self._failures.write(logging.INFO, _source(delivery), form, fields)
        await retry_until_available(lambda: self._committer.write(lambda c: put_off_delivery(c, delivery, again_at)))
        self.note_due(again_at)


def _nothing() -> None:
    pass


def _source(delivery: Delivery) -> str:
    """Lines of its deliveries are limited together."""
    return f"{delivery.topic}/{delivery.subscription}" if delivery.topic else "results of invocations"


def _log_fields(delivery: Delivery) -> dict[str, object]:
    """The delivery in the log, without its target, whose query may hold secrets."""
    what = f"message {delivery.message_id} of topic {delivery.topic} for {delivery.subscription}"
    title = what if delivery.topic else f"the result of invocation {delivery.invocation_key}"
    return {"delivery": title, "delivery_id": delivery.delivery_id, "attempt": delivery.attempt}
