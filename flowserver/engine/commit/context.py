"""What every batch needs: the node's clock, limits, lease and memory, and how much one batch does for one execution."""

from dataclasses import dataclass, field, replace

from flowserver.base.clock import Clock
from flowserver.base.limits import Limits
from flowserver.engine.cluster.lease import Lease
from flowserver.engine.commit.crash_loop_guard import CrashLoopGuard
from flowserver.engine.commit.definition_cache import DefinitionCache
from flowserver.engine.commit.execution_cache import ExecutionCache
from flowserver.engine.commit.task_tokens import TaskTokens
from flowserver.machine.mappings import Environment, MissingSource

SHARED_TURN_STEPS = 50
"""Steps of a turn in which an execution goes on while others have messages, which wait for it."""

MADE_BYTES = 524_288
"""Of documents and events that a batch makes, before what is left of its items waits for another: large results of
one execution take so long that others come between."""

SHARED_BYTES = 131_072
"""Of those that one execution makes in a batch while others have messages, before its next items wait for another
batch: to write 50 KB takes a millisecond, and each step of the others waits for what is written before it."""


@dataclass(frozen=True, slots=True)
class BatchContext:
    """What every batch needs."""

    clock: Clock
    limits: Limits
    missing_source: MissingSource
    tokens: TaskTokens
    lease: Lease
    definitions: DefinitionCache
    warm: ExecutionCache
    at_work: CrashLoopGuard = field(default_factory=CrashLoopGuard)
    made_bytes_max: int = MADE_BYTES
    _shared_limits: Limits = field(init=False)

    def __post_init__(self) -> None:
        """What is the same for all batches."""
        steps_max = min(self.limits.turn_steps_max, SHARED_TURN_STEPS)
        object.__setattr__(self, "_shared_limits", replace(self.limits, turn_steps_max=steps_max))

    def environment_to_go_on(self) -> Environment:
        """The same for executions that go on while others share the writer."""
        return replace(self.environment(), limits=self._shared_limits)

    def environment(self) -> Environment:
        """The machine's view of this moment."""
        return Environment(self.clock.now_ms(), self.limits, self.missing_source, self.tokens.make)
