"""What every batch needs: the node's clock, limits, lease and caches; and how much a batch may do for one execution."""

from dataclasses import dataclass, field, replace

from flowserver.base.clock import Clock
from flowserver.base.limits import Limits
from flowserver.base.task_tokens import TaskTokens
from flowserver.engine.cluster.lease import Lease
from flowserver.engine.commit.crash_loop_guard import CrashLoopGuard
from flowserver.engine.commit.execution_cache import ExecutionCache
from flowserver.machine.mappings import Environment, MissingSource
from flowserver.store.definition_cache import DefinitionCache

SHARED_TURN_STEPS = 50
"""Steps of a `Continue` turn while messages of other executions wait."""

MADE_BYTES = 524_288
"""Documents and events that a batch makes before it leaves the rest of its items to another batch: writing large
results takes so long that other executions must come in between."""

SHARED_BYTES = 131_072
"""The same for one execution while messages of others wait: writing 50 KB takes 1 ms, and each step of the other
executions waits for it."""


@dataclass(frozen=True, slots=True)
class BatchContext:
    """What every batch needs."""

    clock: Clock
    limits: Limits
    missing_source: MissingSource
    tokens: TaskTokens
    lease: Lease
    definitions: DefinitionCache
    cache: ExecutionCache
    crash_loop_guard: CrashLoopGuard = field(default_factory=CrashLoopGuard)
    made_bytes_max: int = MADE_BYTES
    _shared_limits: Limits = field(init=False)

    def __post_init__(self) -> None:
        """Derive what is the same for all batches."""
        steps_max = min(self.limits.turn_steps_max, SHARED_TURN_STEPS)
        object.__setattr__(self, "_shared_limits", replace(self.limits, turn_steps_max=steps_max))

    def environment(self, *, to_go_on: bool = False) -> Environment:
        """The machine's environment at this instant; `to_go_on` for `Continue` messages while others wait."""
        limits = self._shared_limits if to_go_on else self.limits
        return Environment(self.clock.now_ms(), limits, self.missing_source, self.tokens.make)
