"""What a redrive would run again: steps, and among them those that start sub-flows."""

import msgspec


class StepAgain(msgspec.Struct, frozen=True):
    """A step that a redrive would run again."""

    path: str
    why: str
    """`failed`, `aborted` or `asked`."""


class SubFlowAgain(msgspec.Struct, frozen=True):
    """What a sub-flow step does when it runs again."""

    parent: str
    """FLOW/NAME of the execution whose step it is."""
    path: str
    does: str
    """`continues`, `starts`, `joins` or `fails`."""
    child: str | None = None
    """FLOW/NAME of that execution."""
    reason: str | None = None
    """Why the last execution is not continued, or the error with which the step fails."""
