"""Limits of flows: their definitions, versions, aliases and schedules."""

from dataclasses import dataclass

from flowserver.base.limits.row import limit


@dataclass(frozen=True, kw_only=True)
class FlowLimits:
    """Rows of `Limits`."""

    flows_max: int = limit(
        10_000,
        unit="flows",
        reason="the service's documented quota",
        error="429 ResourceThrottled",
    )
    definition_bytes_max: int = limit(
        262_144,
        unit="bytes",
        reason="a definition is parsed whole and kept by every execution",
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
        reason="text of a definition after aliases are followed, which repeat a long text for a few bytes",
        error="400 InvalidArgument (too-much-text), with the line",
    )
    definition_steps_max: int = limit(
        2_000,
        unit="steps",
        reason="steps in all lists of one definition",
        error="400 InvalidArgument (too-many-steps)",
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
        reason="schedules of one flow; more than that is data, which belongs in one schedule's flow",
        error="429 ResourceThrottled",
    )
    schedule_payload_bytes_max: int = limit(
        65_536,
        unit="bytes",
        reason="a schedule's payload is read with every tick",
        error="400 InvalidArgument",
    )
    schedule_buffer_max: int = limit(
        100,
        unit="starts",
        reason="starts that wait for what a schedule runs (`BufferAll`), and its triggers; they are part of its row",
        error="ticks: none, they count as skipped; triggers: 429 ResourceThrottled",
    )
    schedule_backfill_ticks_max: int = limit(
        1_000,
        unit="ticks",
        reason="ticks of one backfill, which are counted before it is accepted",
        error="400 InvalidArgument",
    )
