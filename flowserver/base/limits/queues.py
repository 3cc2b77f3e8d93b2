"""Limits of queues, topics, and what is delivered."""

from dataclasses import dataclass

from flowserver.base.limits.limit import limit


@dataclass(frozen=True, kw_only=True)
class QueueLimits:
    """Rows of `Limits`."""

    queue_message_bytes_max: int = limit(
        65_536,
        unit="bytes",
        reason="the body of a message of a queue or a topic, or of all messages sent in one request, as documented",
        error="400 InvalidArgument",
    )
    queue_batch_max: int = limit(
        16,
        unit="messages",
        reason="messages sent, received or deleted in one request, as documented",
        error="400 InvalidArgument",
    )
    queue_delay_seconds_max: int = limit(
        604_800,
        unit="seconds",
        reason="longest delay of a message, a week as documented",
        error="400 InvalidArgument",
    )
    queue_retention_seconds_max: int = limit(
        604_800,
        unit="seconds",
        reason="longest time that a queue keeps a message, a week as documented",
        error="400 InvalidArgument",
    )
    queue_visibility_seconds_max: int = limit(
        43_200,
        unit="seconds",
        reason="for how long a received message may be hidden from others, half a day as documented",
        error="400 InvalidArgument",
    )
    queue_polling_seconds_max: int = limit(
        30,
        unit="seconds",
        reason="longest wait of one receive, as documented; a worker then asks again",
        error="400 InvalidArgument",
    )
    queue_polls_max: int = limit(
        10_000,
        unit="requests",
        reason="receives that wait on one node; each holds a connection of its client",
        error="none: a further one is answered at once, without waiting",
    )
    topic_subscriptions_max: int = limit(
        100,
        unit="subscriptions",
        reason="subscriptions of one topic; a message is stored once for each until it is delivered",
        error="429 ResourceThrottled",
    )
    deliveries_in_flight_max: int = limit(
        128,
        unit="deliveries",
        reason="messages of topics and results that one node delivers at once; at most an eighth to one endpoint",
        error="none: deliveries wait their turn",
    )
