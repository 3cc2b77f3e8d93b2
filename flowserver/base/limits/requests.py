"""Limits of requests, their answers and pages, and what waits for the writer and the reader."""

from dataclasses import dataclass

from flowserver.base.limits.limit import limit


@dataclass(frozen=True, kw_only=True)
class RequestLimits:
    """Rows of `Limits`."""

    request_bytes_max: int = limit(
        1_048_576,
        unit="bytes",
        reason="size of a request, which is held in memory whole",
        error="400 EntityTooLarge",
    )
    head_bytes_max: int = limit(
        65_536,
        unit="bytes",
        reason="request line, headers and trailers, which are held in memory before the caller is known",
        error="431 HeadTooLarge, or 414 UrlTooLong if the URL alone is longer; the connection is closed",
    )
    head_seconds_max: int = limit(
        30,
        unit="seconds",
        reason="from the begin of a connection, or the first byte of a further request, to the end of the headers",
        error="408 RequestTimeout; the connection is closed",
    )
    body_idle_seconds_max: int = limit(
        30,
        unit="seconds",
        reason="pause between two pieces of a request's body, while the server reads",
        error="408 RequestTimeout; the connection is closed",
    )
    body_seconds_max: int = limit(
        600,
        unit="seconds",
        reason="time for a request's whole body, so that a client cannot send it for ever in small pieces",
        error="408 RequestTimeout; the connection is closed",
    )
    idle_connection_seconds: int = limit(
        75,
        unit="seconds",
        reason="pause between two requests of a connection; longer than clients keep idle connections, so that no "
        "request meets a closing one",
        error="none: the connection is closed",
    )
    connections_max: int = limit(
        16_384,
        unit="connections",
        reason="connections of clients; fewer if the system allows fewer open files: 512 files, or half of all, are "
        "reserved for the database and for functions",
        error="none: further connections wait until others are closed, silent ones after a second",
    )
    page_max: int = limit(
        1_000, unit="items", reason="page of ListFlows and GetExecutionHistory", error="400 InvalidArgument"
    )
    page_bytes_max: int = limit(
        4_194_304,
        unit="bytes",
        reason="texts on one page of a list, such as definitions, documents, event details and payloads, which is "
        "held in memory whole",
        error="none: the page ends early, after one item at least, and its token names the next",
    )
    executions_page_max: int = limit(
        100,
        unit="items",
        reason="page of ListExecutions, and the executions that one request may redrive",
        error="400 InvalidArgument",
    )
    bulk_redrive_bytes_max: int = limit(
        16_777_216,
        unit="bytes",
        reason="definitions, kept step lists and, with `from`, histories that one request reads to redrive executions",
        error="none: the page ends early, after one execution at least, and its token names the next",
    )
    redrive_history_bytes_max: int = limit(
        268_435_456,
        unit="bytes",
        reason="the history of one execution, without large values, that a redrive with `from` reads to find the step",
        error="409 ExecutionNotRedrivable; without `from` it can be redriven",
    )
    large_answers_max: int = limit(
        32,
        unit="answers",
        reason="answers of more than 256 KiB that one process sends at the same time. Each is in memory until its "
        "client has read it; the client must read at least 64 KiB a minute. Access keys have fair shares of them. "
        "Files of the console do not count: their readers share one body",
        error="429 ResourceThrottled. A request that has changed something gets its answer in any case",
    )
    audit_refusals_max: int = limit(
        60,
        unit="kinds",
        reason="kinds of refused callers that one node records in an hour, each with a count: a kind is a permission, "
        "a key, an address and an error",
        error="none: what goes beyond is one record with a count",
    )
    audit_records_max: int = limit(
        1_000_000,
        unit="records",
        reason="records of the audit; a record takes some 300 bytes",
        error="none: the oldest are deleted before their days are over, and the log says so",
    )
    sign_in_link_seconds: int = limit(
        900,
        unit="seconds",
        reason="how long a sign-in link of the console may be used",
        error="401 AccessDenied; make another link with `flowserver keys create --sign-in-link`",
    )
    held_requests_per_key_max: int = limit(
        4_000,
        unit="requests",
        reason="long polls, event streams and waits for an execution's end that one access key holds on one node, so "
        "that other keys find a place",
        error="429 ResourceThrottled; a wait for an execution's end is answered at once, without waiting",
    )
    starts_per_second_max: int = limit(
        0,
        100,
        unit="requests",
        reason="StartExecution a second of one access key, on one node; 0 for any number",
        error="429 ResourceThrottled",
    )
    starts_burst_max: int = limit(
        100, unit="requests", reason="as many of these at once, after a pause", error="429 ResourceThrottled"
    )
    reads_per_second_max: int = limit(
        0,
        5,
        unit="requests",
        reason="DescribeExecution a second of one access key, on one node, and as many GetExecutionHistory; 0 for any "
        "number",
        error="429 ResourceThrottled",
    )
    reads_burst_max: int = limit(
        50, unit="requests", reason="as many of these at once, after a pause", error="429 ResourceThrottled"
    )
    actions_per_second_max: int = limit(
        0,
        2,
        unit="requests",
        reason="requests a second of one access key, on one node, for each other action of RPC; 0 for any number",
        error="429 ResourceThrottled",
    )
    actions_burst_max: int = limit(
        10, unit="requests", reason="as many of these at once, after a pause", error="429 ResourceThrottled"
    )
    describe_wait_seconds_max: int = limit(
        60, unit="seconds", reason="WaitTimeSeconds of DescribeExecution, as documented", error="400 InvalidArgument"
    )
    sync_wait_seconds_max: int = limit(
        300,
        unit="seconds",
        reason="StartSyncExecution answers within five minutes, the documented life of an express execution",
        error="none: the reply's Status is Running and the execution goes on",
    )
    pending_messages_max: int = limit(
        2_000,
        unit="messages",
        reason="work that waits for the writer, and reads that wait for the reader; beyond it callers get an error. "
        "Near it each access key has a fair share: one key gets five sixths, and a key with few requests is served",
        error="429 ResourceThrottled. A request that has changed something gets its answer in any case",
    )
    spans_waiting_max: int = limit(
        10_000,
        unit="spans",
        reason="spans that wait to be exported, held in memory, if `tracing` is on",
        error="none: further ones are dropped and counted in flowserver_dropped_spans_total",
    )
