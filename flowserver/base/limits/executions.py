"""Limits of executions: their data, their histories, and how long and how many of them run."""

from dataclasses import dataclass

from flowserver.base.limits.limit import limit


@dataclass(frozen=True, kw_only=True)
class ExecutionLimits:
    """Rows of `Limits`."""

    running_executions_max: int = limit(
        1_000_000,
        10_000,
        unit="executions",
        reason="running executions of the server. Sub-flows may add as many again, so that callers who start as many "
        "as they may do not fail executions that run",
        error="429 ResourceThrottled; in a step FnF.ResourceThrottled",
    )
    execution_seconds_max: int = limit(
        31_536_000,
        unit="seconds",
        reason="longest life of an execution, one year as documented",
        error="the execution ends TimedOut",
    )
    step_data_bytes_max: int = limit(
        262_144,
        32_768,
        unit="bytes",
        reason="input + output + local of one step, as compact JSON; every event repeats them",
        error="400 InvalidArgument for an input or a report; a task's attempt, or another step, fails with "
        "FnF.RuntimeError",
    )
    execution_data_bytes_max: int = limit(
        33_554_432,
        unit="bytes",
        reason="inputs and locals of all open step lists of one execution and what its joins have gathered, as compact "
        "JSON; all may be in memory at once. Room for 100 iterations with as much data each as a step may have",
        error="400 InvalidArgument for a report; a task's attempt, or another step, fails with FnF.RuntimeError",
    )
    events_max: int = limit(
        200_000,
        5_000,
        unit="events",
        reason="events of one execution: bounds a runaway loop and the size of a history; a polling loop can make some "
        "13,000 turns",
        error="the execution fails with FnF.RuntimeError",
    )
    sub_flow_depth_max: int = limit(
        10,
        unit="ancestors",
        reason="ancestors of a sub-flow's execution; ends a flow that starts itself, in branches of a parallel, too",
        error="the step fails with FnF.SubFlowTooDeep",
    )
    live_scopes_max: int = limit(
        20_000,
        unit="lists",
        reason="step lists of one execution that are open or wait for a join (nested foreach multiplies)",
        error="the execution fails with FnF.RuntimeError",
    )
    foreach_concurrency_max: int = limit(
        100,
        unit="iterations",
        reason="iterations of one foreach that run at once; further ones wait for a slot",
        error="none: the collection is processed with this window",
    )
    foreach_items_max: int = limit(
        10_000,
        unit="items",
        reason="elements of one foreach collection",
        error="the step fails with FnF.RuntimeError",
    )
    wait_seconds_max: int = limit(
        172_800,
        unit="seconds",
        reason="longest wait step, two days as documented",
        error="400 InvalidArgument for a constant; FnF.RuntimeError for a computed value",
    )
    retry_interval_seconds_max: int = limit(
        86_400,
        unit="seconds",
        reason="longest pause between attempts, as documented",
        error="400 InvalidArgument (bad-value)",
    )
    retry_attempts_max: int = limit(
        1_000_000,
        unit="attempts",
        reason="retries of one policy; keeps the counter in 32 bits",
        error="400 InvalidArgument (bad-value)",
    )
    error_characters_max: int = limit(
        128,
        unit="characters",
        reason="error names, as documented",
        error="400 InvalidArgument; a function's longer error name is cut",
    )
    cause_characters_max: int = limit(
        4_096,
        unit="characters",
        reason="causes, as documented",
        error="400 InvalidArgument; a function's longer cause is cut",
    )
    turn_steps_max: int = limit(
        200,
        unit="steps",
        reason="steps that an execution runs before it commits, so that a loop without waiting does not delay others; "
        "one more is counted for each 4 KiB of a new large value, for each 16 KiB of an event, and for each iteration "
        "that a second foreach opens",
        error="none: the execution continues after the commit",
    )
    step_path_characters_max: int = limit(
        8_192,
        unit="characters",
        reason="a step's path in a search of a history; the deepest definition has paths of some 7,000",
        error="400 InvalidArgument",
    )
    step_paths_bytes_max: int = limit(
        50_331_648,
        unit="bytes",
        reason="memory of the step summary of one execution with the paths of its events, and of all summaries that "
        "one node caches between requests",
        error="400 InvalidArgument if one execution passes it; otherwise the least recently used summaries are "
        "evicted, and made again from the whole history when they are needed",
    )
    followed_summaries_bytes_max: int = limit(
        134_217_728,
        unit="bytes",
        reason="memory of the step summaries that one node holds, besides those of `step_paths_bytes_max`, for the "
        "streams of events with paths; an execution of 100,000 events takes some 7 MB",
        error="none: the summaries of further streams are cached as those of other requests are",
    )
    step_snapshots_bytes_max: int = limit(
        4_194_304,
        unit="bytes",
        reason="memory of the step summary of one execution as it was after each thousandth event; part of "
        "`step_paths_bytes_max`",
        error="none: every second one is dropped, and a request for an earlier event reads twice as many events",
    )
    streamed_events_bytes_max: int = limit(
        16_777_216,
        unit="bytes",
        reason="encoded events that one node keeps for the streams of executions that are followed, so that all "
        "streams of an execution share them",
        error="none: the least recently used are dropped, and a stream that is so far behind reads them for itself",
    )
    cached_executions_bytes_max: int = limit(
        50_331_648,
        unit="bytes",
        reason="executions that one node keeps in memory while it makes calls for them: their inputs, documents and "
        "what is remembered of their histories, as JSON; as objects they may take several times as much memory",
        error="none: the least recently used are evicted, and read again for their next turn",
    )
