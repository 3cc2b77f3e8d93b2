"""What a stream of events says about the step summary, so that its readers need not ask for the summary again."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final, Self

from flowserver.machine.step_summary import StepSummary
from flowserver.machine.step_summary_fold import StepSummaries

CHANGES_MAX: Final = 200
"""Steps that one message may have, and a page of events; only an end or a redrive changes more at once."""

STEPS_BYTES_MAX: Final = 65_536
"""Of the paths and edges of these steps; encoding them all takes some milliseconds."""


@dataclass(frozen=True, slots=True)
class StepChanges:
    """What has become of a step summary since an event. Encode it before the fold takes in further events."""

    steps: Sequence[StepSummary] | None
    """The steps that have changed, in the order in which they were entered first; None if they are too many."""
    last_event_id: int
    """They count all events up to this one."""
    last_ms: int | None
    """When it was recorded."""
    execution_status: str
    """What the execution was after it."""

    @classmethod
    def after(cls, summaries: StepSummaries, event_id: int) -> Self:
        """What the fold has changed since that event."""
        changed = summaries.changed_after(event_id)
        is_small = len(changed) <= CHANGES_MAX and sum(step.shown_bytes for step in changed) <= STEPS_BYTES_MAX
        steps = changed if is_small else None
        return cls(steps, summaries.last_event_id, summaries.last_ms, summaries.execution_status)


EncodeChanges = Callable[[StepChanges], bytes]
