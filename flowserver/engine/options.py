"""What the settings of a server choose for its engine, apart from the limits."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from flowserver.base.encryption import NO_ENCRYPTION, Encryption
from flowserver.engine.executions.message_sender import QueueBodies
from flowserver.invokers.brokers import Outlet
from flowserver.language.graph import ChildLifecycle
from flowserver.machine.mappings import MissingSource
from flowserver.machine.retention_rules import FOR_EVER, Rules
from flowserver.tracing.spans import Tracer


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineOptions:
    """See the settings of these names; `rules` are those of retention, `outlets` the queues that brokers keep."""

    missing_source: MissingSource = "null"
    child_lifecycle: ChildLifecycle = "owned"
    rules: Rules = FOR_EVER
    outlets: Mapping[str, Outlet] = field(default_factory=dict)
    queue_bodies: QueueBodies = "base64"
    encryption: Encryption = NO_ENCRYPTION
    disk_reserve_bytes: int = 0
    data_bytes_max: int = 0
    tracer: Tracer | None = None


DEFAULTS: Final = EngineOptions()
