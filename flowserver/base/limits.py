"""Every limit of the server, in one table, in two profiles.

`default` is generous; `cloud` holds the numbers that the cloud service documents. Each row says why the limit is
there and what a caller sees when it is passed. docs/reference/limits.md is made from this table.
"""

from dataclasses import dataclass, field, fields
from typing import Any, Literal

RETENTION_DAYS_MAX = 36_500
"""A century; more is for ever, which is said with 0."""

LimitsProfile = Literal["default", "cloud"]


def _limit(default: int, cloud: int | None = None, *, unit: str, reason: str, error: str) -> Any:
    row = {"cloud": default if cloud is None else cloud, "unit": unit, "reason": reason, "error": error}
    return field(default=default, metadata=row)


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """The limits in force; the field defaults are the `default` profile."""

    request_bytes_max: int = _limit(
        1_048_576,
        unit="bytes",
        reason="a request is held in memory whole",
        error="400 EntityTooLarge",
    )
    head_bytes_max: int = _limit(
        65_536,
        unit="bytes",
        reason="request line, headers and trailers are held in memory before the caller is known",
        error="431 HeadTooLarge, or 414 UrlTooLong if the URL alone is longer; the connection is closed",
    )
    head_seconds_max: int = _limit(
        30,
        unit="seconds",
        reason="from a connection's first byte of a request, or its begin, to the end of the request's headers",
        error="408 RequestTimeout; the connection is closed",
    )
    body_idle_seconds_max: int = _limit(
        30,
        unit="seconds",
        reason="between two pieces of a request's body, while the server reads",
        error="408 RequestTimeout; the connection is closed",
    )
    body_seconds_max: int = _limit(
        600,
        unit="seconds",
        reason="for a request's whole body, so that a body that trickles in ends",
        error="408 RequestTimeout; the connection is closed",
    )
    idle_connection_seconds: int = _limit(
        75,
        unit="seconds",
        reason="between two requests of a connection; "
        "longer than clients keep theirs, so that no request meets a closing one",
        error="none: the connection is closed",
    )
    connections_max: int = _limit(
        16_384,
        unit="connections",
        reason="connections of clients; where the system allows fewer open files, fewer: "
        "512 files, or half of all, are kept for the database and for functions",
        error="none: further connections wait until others are closed",
    )
    definition_bytes_max: int = _limit(
        262_144,
        unit="bytes",
        reason="a definition is parsed whole and kept by every execution",
        error="400 InvalidArgument (definition-too-large)",
    )
    definition_depth_max: int = _limit(
        100,
        unit="levels",
        reason="YAML nesting: deeper documents exhaust the parser's stack",
        error="400 InvalidArgument (nesting-too-deep), with the line",
    )
    definition_nodes_max: int = _limit(
        50_000,
        unit="nodes",
        reason="YAML nodes after aliases are followed: stops alias bombs",
        error="400 InvalidArgument (too-many-nodes), with the line",
    )
    definition_characters_max: int = _limit(
        1_048_576,
        unit="characters",
        reason="text of a definition after aliases are followed, which repeat a long text for a few bytes",
        error="400 InvalidArgument (too-much-text), with the line",
    )
    definition_steps_max: int = _limit(
        2_000,
        unit="steps",
        reason="steps in all lists of one definition",
        error="400 InvalidArgument (too-many-steps)",
    )
    branches_max: int = _limit(
        100,
        unit="branches",
        reason="branches of one parallel step; the service's documented bound",
        error="400 InvalidArgument (too-many-branches)",
    )
    schedules_per_flow_max: int = _limit(
        1_000,
        unit="schedules",
        reason="schedules of one flow; more than that is data, which belongs in one schedule's flow",
        error="429 ResourceThrottled",
    )
    schedule_payload_bytes_max: int = _limit(
        65_536,
        unit="bytes",
        reason="a schedule's payload is read with every tick",
        error="400 InvalidArgument",
    )
    schedule_buffer_max: int = _limit(
        100,
        unit="starts",
        reason="starts that wait for what a schedule runs (`BufferAll`), and its triggers; they are part of its row",
        error="ticks: none, they count as skipped; triggers: 429 ResourceThrottled",
    )
    schedule_backfill_ticks_max: int = _limit(
        1_000,
        unit="ticks",
        reason="ticks of one backfill, which are counted before it is accepted",
        error="400 InvalidArgument",
    )
    flows_max: int = _limit(
        10_000,
        unit="flows",
        reason="the service's documented quota",
        error="429 ResourceThrottled",
    )
    flow_versions_max: int = _limit(
        1_000, unit="versions", reason="versions of one flow; each keeps its definition", error="429 ResourceThrottled"
    )
    flow_aliases_max: int = _limit(100, unit="aliases", reason="aliases of one flow", error="429 ResourceThrottled")
    step_data_bytes_max: int = _limit(
        262_144,
        32_768,
        unit="bytes",
        reason="input + output + local of one step, as compact JSON; every event repeats them",
        error="the execution fails with FnF.RuntimeError",
    )
    execution_data_bytes_max: int = _limit(
        33_554_432,
        unit="bytes",
        reason="inputs and locals of all open step lists of one execution and what its joins have gathered, as compact "
        "JSON; all may be in memory at once. Room for 100 iterations with as much data each as a step may have",
        error="the execution fails with FnF.RuntimeError",
    )
    events_max: int = _limit(
        200_000,
        5_000,
        unit="events",
        reason="bounds a runaway loop and the size of a history; a polling loop comes to some 13,000 turns",
        error="the execution fails with FnF.RuntimeError",
    )
    foreach_concurrency_max: int = _limit(
        100,
        unit="iterations",
        reason="iterations of one foreach that run at once; further ones wait for a slot",
        error="none: the collection is processed with this window",
    )
    foreach_items_max: int = _limit(
        10_000,
        unit="items",
        reason="elements of one foreach collection",
        error="the step fails with FnF.RuntimeError",
    )
    live_scopes_max: int = _limit(
        20_000,
        unit="lists",
        reason="step lists of one execution that are open or wait for a join (nested foreach multiplies)",
        error="the execution fails with FnF.RuntimeError",
    )
    wait_seconds_max: int = _limit(
        172_800,
        unit="seconds",
        reason="longest wait step, two days as documented",
        error="400 InvalidArgument for a constant; FnF.RuntimeError for a computed value",
    )
    retry_interval_seconds_max: int = _limit(
        86_400,
        unit="seconds",
        reason="longest pause between attempts, as documented",
        error="400 InvalidArgument (bad-value)",
    )
    retry_attempts_max: int = _limit(
        1_000_000,
        unit="attempts",
        reason="keeps the counter in 32 bits",
        error="400 InvalidArgument (bad-value)",
    )
    execution_seconds_max: int = _limit(
        31_536_000,
        unit="seconds",
        reason="longest life of an execution, one year as documented",
        error="the execution ends TimedOut",
    )
    function_seconds_max: int = _limit(
        86_400,
        unit="seconds",
        reason="longest time-out a function may be registered with; longer work uses waitForCallback",
        error="400 InvalidArgument",
    )
    function_response_bytes_max: int = _limit(
        6_291_456,
        unit="bytes",
        reason="a function's answer is held in memory whole; Function Compute's documented payload",
        error="the attempt fails with FnF.InvalidLocal",
    )
    interim_replies_max: int = _limit(
        1_000,
        unit="replies",
        reason="interim replies (1xx) before the reply of one call: they come without end from a broken function",
        error="the attempt fails with FC.Unknown",
    )
    invocation_payload_bytes_max: int = _limit(
        6_291_456,
        unit="bytes",
        reason="payload of a synchronous invocation through the Function Compute API, as documented",
        error="400 EntityTooLarge",
    )
    async_payload_bytes_max: int = _limit(
        131_072,
        unit="bytes",
        reason="payload of an asynchronous invocation, which is stored for days; as documented",
        error="400 EntityTooLarge",
    )
    error_characters_max: int = _limit(
        128,
        unit="characters",
        reason="error names, as documented",
        error="400 InvalidArgument; a function's longer error name is cut",
    )
    cause_characters_max: int = _limit(
        4_096,
        unit="characters",
        reason="causes, as documented",
        error="400 InvalidArgument; a function's longer cause is cut",
    )
    running_executions_max: int = _limit(
        1_000_000,
        10_000,
        unit="executions",
        reason="running executions of the server",
        error="429 ResourceThrottled",
    )
    turn_steps_max: int = _limit(
        200,
        unit="steps",
        reason="steps one turn runs before it commits, so that a hot loop cannot hold the writer; each 16 KiB of an "
        "event, each 4 KiB of a large value that is new to the turn, and each iteration opened beyond those "
        "of one loop count as one more",
        error="none: the next turn goes on",
    )
    describe_wait_seconds_max: int = _limit(
        60, unit="seconds", reason="DescribeExecution.WaitTimeSeconds, as documented", error="400 InvalidArgument"
    )
    sync_wait_seconds_max: int = _limit(
        300,
        unit="seconds",
        reason="StartSyncExecution answers within five minutes, the documented life of an express execution",
        error="none: the reply's Status is Running and the execution goes on",
    )
    page_max: int = _limit(1_000, unit="items", reason="ListFlows and GetExecutionHistory", error="400 InvalidArgument")
    page_bytes_max: int = _limit(
        4_194_304,
        unit="bytes",
        reason="texts on one page of a list, such as definitions, documents, event details and payloads, which is "
        "held in memory whole",
        error="none: the page ends early, after one item at least, and its token names the next",
    )
    large_answers_max: int = _limit(
        32,
        unit="answers",
        reason="answers of more than 256 KiB that one process is sending: each is in memory until its client has read "
        "it, which it must do at 64 KiB a minute at least",
        error="429 ResourceThrottled; none for a request that has changed something, whose answer is sent all the same",
    )
    executions_page_max: int = _limit(
        100,
        unit="items",
        reason="ListExecutions, and the executions that one request may redrive",
        error="400 InvalidArgument",
    )
    pending_messages_max: int = _limit(
        2_000,
        unit="messages",
        reason="work waiting for the writer, and reads waiting for the reader; past it callers get an error at once",
        error="429 ResourceThrottled",
    )
    cached_executions_bytes_max: int = _limit(
        50_331_648,
        unit="bytes",
        reason="executions that one node keeps in memory while it makes calls for them: their inputs, documents and "
        "what is remembered of their histories, as JSON; as objects they may take several times as much memory",
        error="none: others are read again for their next turn, least recently used first",
    )
    invocations_in_flight_max: int = _limit(
        256,
        unit="calls",
        reason="function calls one node makes at once; further ones wait for a slot, and flows take turns",
        error="none: calls wait their turn",
    )
    in_flight_share_percent: int = _limit(
        75,
        unit="percent",
        reason="of these slots less a sixteenth, how many one function or one flow gets while no other is busy; "
        "several get less each, and the sixteenth is for functions and flows that have no slot, so that a few that "
        "hang never take all",
        error="none: calls wait their turn",
    )
    queue_message_bytes_max: int = _limit(
        65_536,
        unit="bytes",
        reason="the body of a message of a queue or a topic, or of all messages sent in one request, as documented",
        error="400 InvalidArgument",
    )
    queue_batch_max: int = _limit(
        16,
        unit="messages",
        reason="messages sent, received or deleted in one request, as documented",
        error="400 InvalidArgument",
    )
    queue_delay_seconds_max: int = _limit(
        604_800,
        unit="seconds",
        reason="longest delay of a message, a week as documented",
        error="400 InvalidArgument",
    )
    queue_retention_seconds_max: int = _limit(
        604_800,
        unit="seconds",
        reason="longest time that a queue keeps a message, a week as documented",
        error="400 InvalidArgument",
    )
    queue_visibility_seconds_max: int = _limit(
        43_200,
        unit="seconds",
        reason="for how long a received message may be hidden from others, half a day as documented",
        error="400 InvalidArgument",
    )
    queue_polling_seconds_max: int = _limit(
        30,
        unit="seconds",
        reason="longest wait of one receive, as documented; a worker then asks again",
        error="400 InvalidArgument",
    )
    queue_polls_max: int = _limit(
        10_000,
        unit="requests",
        reason="receives that wait on one node; each holds a connection of its client",
        error="none: a further one is answered at once, as if its wait were over",
    )
    topic_subscriptions_max: int = _limit(
        100,
        unit="subscriptions",
        reason="subscriptions of one topic: a message is kept once for each of them until it has been brought there",
        error="429 ResourceThrottled",
    )
    deliveries_in_flight_max: int = _limit(
        128,
        unit="deliveries",
        reason="messages of topics and results that one node brings to their destinations at once; an eighth to one",
        error="none: deliveries wait their turn",
    )
    function_waiting_max: int = _limit(
        100_000,
        unit="calls",
        reason="calls of one function that wait on a node, where its registration does not say; "
        "those of steps and asynchronous invocations wait as rows and a key in memory",
        error="asynchronous: 503 ResourceThrottled; others: 429 ResourceExhausted, in a step FC.ResourceExhausted",
    )
    invocation_result_bytes_max: int = _limit(
        1_048_576,
        unit="bytes",
        reason="what is kept of an asynchronous invocation's result, as documented",
        error="none: no result is kept; a step that waits for it fails with FnF.InvalidLocal",
    )
    invocation_days: int = _limit(
        7,
        unit="days",
        reason="how long an asynchronous invocation can be asked for after its end, as documented",
        error="404 StatefulAsyncInvocationNotFound",
    )

    @staticmethod
    def of(profile: LimitsProfile) -> "Limits":
        """The limits of a profile."""
        if profile == "default":
            return Limits()
        return Limits(**{row.name: row.metadata["cloud"] for row in fields(Limits)})
