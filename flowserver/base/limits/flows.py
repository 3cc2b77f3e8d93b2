"""Limits of flows: their definitions, versions, aliases and schedules."""

from dataclasses import dataclass

from flowserver.base.limits.limit import limit


@dataclass(frozen=True, kw_only=True)
class FlowLimits:
    """Rows of `Limits`."""

    flows_max: int = limit(
        10_000,
        unit="flows",
        reason="flows of the server; the service's documented quota",
        error="429 ResourceThrottled",
    )
    definition_bytes_max: int = limit(
        262_144,
        unit="bytes",
        reason="size of a definition, which is parsed whole and kept by every execution",
        error="400 InvalidArgument (definition-too-large)",
    )
    definition_depth_max: int = limit(
        100,
        unit="levels",
        reason="YAML nesting: deeper documents exhaust the parser's stack",
        error="400 InvalidArgument (nesting-too-deep), with the line",
    )
    definition_nodes_max: int = limit(
        50_000,
        unit="nodes",
        reason="YAML nodes after aliases are followed: stops alias bombs",
        error="400 InvalidArgument (too-many-nodes), with the line",
    )
    definition_characters_max: int = limit(
        1_048_576,
        unit="characters",
        reason="text of a definition after aliases are followed; an alias repeats a long text for a few bytes",
        error="400 InvalidArgument (too-much-text), with the line",
    )
    definition_steps_max: int = limit(
        2_000,
        unit="steps",
        reason="steps in all lists of one definition",
        error="400 InvalidArgument (too-many-steps)",
    )
    graph_path_bytes_max: int = limit(
        4_194_304,
        unit="bytes",
        reason="paths of the steps in the graph of a definition; names of steps that nest deeply repeat in each path",
        error="400 InvalidArgument; the flow can run all the same",
    )
    definition_proof_keys_max: int = limit(
        50_000,
        unit="keys",
        reason="keys of data that the rules of `prove` carry from step to step when a server checks a definition, in a "
        "thread in the background",
        error="none: the rules say nothing of its data; `flowserver prove` carries 200,000",
    )
    branches_max: int = limit(
        100,
        unit="branches",
        reason="branches of one parallel step; the service's documented bound",
        error="400 InvalidArgument (too-many-branches)",
    )
    flow_versions_max: int = limit(
        1_000, unit="versions", reason="versions of one flow; each keeps its definition", error="429 ResourceThrottled"
    )
    flow_aliases_max: int = limit(100, unit="aliases", reason="aliases of one flow", error="429 ResourceThrottled")
    schedules_per_flow_max: int = limit(
        1_000,
        unit="schedules",
        reason="schedules of one flow; for more, let one schedule start a flow that goes through a list",
        error="429 ResourceThrottled",
    )
    schedule_payload_bytes_max: int = limit(
        65_536,
        unit="bytes",
        reason="payload of a schedule, which is read with every tick",
        error="400 InvalidArgument",
    )
    schedule_buffer_max: int = limit(
        100,
        unit="starts",
        reason="ticks (`BufferAll`) and triggers of one schedule that wait for an execution to end; its row holds them",
        error="ticks: none, they count as skipped; triggers: 429 ResourceThrottled",
    )
    schedule_backfill_ticks_max: int = limit(
        1_000,
        unit="ticks",
        reason="ticks of one backfill; the server counts them before it accepts it",
        error="400 InvalidArgument",
    )
