"""`choice`: the first option whose condition holds, else the default, else nothing."""

from typing import Final

from flowserver.base.json_values import Json, JsonObject
from flowserver.expressions.conditions import CONDITION_VALUES_MAX, holds
from flowserver.expressions.fuel import Fuel
from flowserver.language.graph import ChoiceStep, Option
from flowserver.machine.events import EventType
from flowserver.machine.mappings import RUNTIME_ERROR
from flowserver.machine.messages import Failure
from flowserver.machine.scope_progress import complete_step, fail_step
from flowserver.machine.state import Scope, WaitKind
from flowserver.machine.turn import Turn

DEFAULT_OPTION = -1

STEP_VALUES: Final = 1_000
"""Comparing this many values takes about as long as one step, and counts as one in the turn."""


def enter_choice(turn: Turn, scope: Scope, step: ChoiceStep) -> None:
    """Pick the option and record it; run its steps in a scope of their own, or go on at once if it has none.

    The conditions share one fuel, since a definition has room for thousands; without it nothing is picked by mistake.
    """
    fuel = Fuel(CONDITION_VALUES_MAX)
    picked = choose(step, scope.step_input, fuel)
    turn.steps_left -= fuel.used // STEP_VALUES
    if fuel.is_spent:
        turn.record_in(scope, EventType.STEP_STARTED, input=scope.step_input)
        cause = f"the conditions compare more than {fuel.limit} values of the step's input"
        fail_step(turn, scope, Failure(RUNTIME_ERROR, cause))
        return
    scope.option = picked
    turn.record_in(scope, EventType.STEP_STARTED, input=scope.step_input, option=recorded_option(picked))
    option = option_of(step, scope)
    if option is None or option.steps is None:
        complete_step(turn, scope, {}, {}, goto=None if option is None else option.goto)
        return
    turn.begin_wait(scope, WaitKind.JOIN)
    turn.open_scope(scope, option.steps.list_id, 0, scope.last_event_id)


def finish_option(turn: Turn, scope: Scope, step: ChoiceStep, child: Scope) -> None:
    """The option's steps are done: their local is the choice's; then the option's goto."""
    scope.last_event_id = child.last_event_id
    turn.remove_opened_by(scope)
    option = option_of(step, scope)
    assert option is not None
    complete_step(turn, scope, child.local, child.local, goto=option.goto)


def choose(step: ChoiceStep, step_input: JsonObject | None, fuel: Fuel) -> int | None:
    """The number of the option that is taken, DEFAULT_OPTION for the default, None if there is none."""
    for number, option in enumerate(step.options):
        if option.condition is not None and holds(option.condition, step_input, fuel):
            return number
    return None if step.default is None else DEFAULT_OPTION


def recorded_option(option: int | None) -> Json:
    """The option as events have it: its number, "default", or None if none was taken."""
    return "default" if option == DEFAULT_OPTION else option


def option_of(step: ChoiceStep, scope: Scope) -> Option | None:
    """The option that the scope's choice took; None if it took none, or the step has no such option."""
    if scope.option is None:
        return None
    if scope.option == DEFAULT_OPTION:
        return step.default
    return step.options[scope.option] if scope.option < len(step.options) else None
