"""`wait`: until an instant or for a number of seconds; a time that has passed ends the step at once."""

from flowserver.base.clock import parse_instant
from flowserver.base.json_values import Json, dump_json
from flowserver.expressions.paths import Missing, Path, find
from flowserver.language.graph import WaitStep
from flowserver.machine.mappings import RUNTIME_ERROR
from flowserver.machine.messages import Failure
from flowserver.machine.scope_progress import complete_step, fail_step
from flowserver.machine.state import Scope, WaitKind
from flowserver.machine.turn import Turn


def enter_wait(turn: Turn, scope: Scope, step: WaitStep) -> None:
    """Compute the end of the wait and set the timer; FnF.RuntimeError for values that are no valid time."""
    now = turn.environment.now_ms
    wake_at = _wake_at(step, scope.step_input, now)
    if isinstance(wake_at, int) and wake_at - now > turn.environment.limits.wait_seconds_max * 1000:
        seconds_max = turn.environment.limits.wait_seconds_max
        wake_at = Failure(RUNTIME_ERROR, f"the wait is longer than {seconds_max} seconds")
    if isinstance(wake_at, Failure):
        fail_step(turn, scope, wake_at)
    elif wake_at <= now:
        finish_wait(turn, scope)
    else:
        turn.begin_wait(scope, WaitKind.TIMER, wake_at)


def finish_wait(turn: Turn, scope: Scope) -> None:
    """The time has come."""
    complete_step(turn, scope, {}, {})


def _wake_at(step: WaitStep, step_input: Json, now_ms: int) -> int | Failure:
    if isinstance(step.timestamp, int):
        return step.timestamp
    if isinstance(step.timestamp, Path):
        return _instant(find(step.timestamp, step_input), step.timestamp.text)
    if isinstance(step.duration, Path):
        return _after(now_ms, find(step.duration, step_input), step.duration.text)
    assert step.duration is not None
    return now_ms + step.duration * 1000


def _instant(value: Json | Missing, source: str) -> int | Failure:
    try:
        if isinstance(value, str):
            return parse_instant(value)
    except (ValueError, OverflowError):
        pass
    return Failure(RUNTIME_ERROR, f"timestamp: {source} is not an RFC 3339 instant: {_shown(value)}")


def _after(now_ms: int, value: Json | Missing, source: str) -> int | Failure:
    if isinstance(value, (int, float)) and not isinstance(value, bool) and value >= 0:
        return now_ms + round(min(value, 10**12) * 1000)
    return Failure(RUNTIME_ERROR, f"duration: {source} is not a number of seconds, 0 or more: {_shown(value)}")


def _shown(value: Json | Missing) -> str:
    """The value as JSON, cut; or a word for a missing value."""
    return "not found" if isinstance(value, Missing) else dump_json(value)[:60]
