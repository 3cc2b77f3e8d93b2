"""`pass`, `succeed` and `fail`: steps that end at once."""

from flowserver.language.graph import FailStep
from flowserver.machine.messages import Failure
from flowserver.machine.scope_progress import complete_step, fail_step
from flowserver.machine.state import Scope
from flowserver.machine.turn import Turn


def enter_pass(turn: Turn, scope: Scope) -> None:
    """`pass`: its local is empty; its mappings make its output."""
    complete_step(turn, scope, {}, {})


def enter_succeed(turn: Turn, scope: Scope) -> None:
    """`succeed`: as pass, and ends its list."""
    complete_step(turn, scope, {}, {}, stop=True)


def enter_fail(turn: Turn, scope: Scope, step: FailStep) -> None:
    """`fail`: the list fails with the step's constant error and cause."""
    fail_step(turn, scope, Failure(step.error, step.cause))
