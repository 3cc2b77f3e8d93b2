"""Limits of calls of functions, and asynchronous invocations."""

from dataclasses import dataclass

from flowserver.base.limits.limit import limit


@dataclass(frozen=True, kw_only=True)
class CallLimits:
    """Rows of `Limits`."""

    invocations_in_flight_max: int = limit(
        256,
        unit="calls",
        reason="function calls that one node makes at once (its slots); further calls wait, and flows take turns",
        error="none: calls wait their turn",
    )
    in_flight_share_percent: int = limit(
        75,
        unit="percent",
        reason="of these slots less a reserved sixteenth, the share of one function or flow while no other is busy; "
        "several get less each. The sixteenth is reserved for functions and flows without a slot, so that a few that "
        "hang never take all",
        error="none: calls wait their turn",
    )
    function_waiting_max: int = limit(
        100_000,
        unit="calls",
        reason="calls of one function that wait on a node, unless its registration sets `waitingMax`; asynchronous "
        "invocations wait as rows, with only a key in memory. Calls and invocations of steps wait without this bound",
        error="asynchronous: 503 ResourceThrottled; others: 429 ResourceExhausted",
    )
    function_seconds_max: int = limit(
        86_400,
        unit="seconds",
        reason="longest time-out a function may be registered with; longer work uses waitForCallback",
        error="400 InvalidArgument",
    )
    function_response_bytes_max: int = limit(
        6_291_456,
        unit="bytes",
        reason="a function's answer is held in memory whole; Function Compute's documented payload",
        error="the attempt fails with FnF.InvalidLocal",
    )
    large_replies_max: int = limit(
        16,
        unit="replies",
        reason="answers of functions of more than 64 KiB that one process reads at the same time, so that they neither "
        "fill its memory nor hold up other work. Functions and flows have shares of these places, as of calls "
        "(`in_flight_share_percent`)",
        error="none: others are not read further until a place is free, while the call's time goes on",
    )
    function_response_head_bytes_max: int = limit(
        65_536,
        unit="bytes",
        reason="header fields and trailers of a function's answer and of the interim replies before it, 32 more for "
        "each field; they are held in memory",
        error="the attempt fails with FC.Unknown",
    )
    interim_replies_max: int = limit(
        100,
        unit="replies",
        reason="interim replies (1xx) before the reply of one call: one in six seconds of the longest call; a broken "
        "function may send them without end",
        error="the attempt fails with FC.Unknown",
    )
    secrets_max: int = limit(
        1_000, unit="secrets", reason="secrets of the server; lists show what uses each", error="429 ResourceThrottled"
    )
    secret_bytes_max: int = limit(
        8_192,
        unit="bytes",
        reason="value of a secret: more than servers take in a header",
        error="400 InvalidArgument",
    )
    invocation_payload_bytes_max: int = limit(
        6_291_456,
        unit="bytes",
        reason="payload of a synchronous invocation through the Function Compute API, as documented",
        error="400 EntityTooLarge",
    )
    async_payload_bytes_max: int = limit(
        131_072,
        unit="bytes",
        reason="payload of an asynchronous invocation, which is stored for days; as documented",
        error="400 EntityTooLarge",
    )
    invocation_result_bytes_max: int = limit(
        1_048_576,
        unit="bytes",
        reason="what is kept of an asynchronous invocation's result, as documented",
        error="none: no result is kept; a step that waits for it fails with FnF.InvalidLocal",
    )
    invocation_days: int = limit(
        7,
        unit="days",
        reason="how long an asynchronous invocation can be read after its end, as documented",
        error="404 StatefulAsyncInvocationNotFound",
    )
