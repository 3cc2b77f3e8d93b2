"""Selects the retry policy and the catch rule for an error, and computes the pause before a retry."""

import math
from collections.abc import Mapping

from flowserver.language.graph import CatchRule, RetryPolicy

ALL_ERRORS = "FnF.ALL"
FAILED = "FnF.Failed"
TASK_TIMEOUT = "FnF.TaskTimeout"
EXECUTION_STOPPED = "FnF.ExecutionStopped"
INVALID_LOCAL = "FnF.InvalidLocal"


def _names(errors: frozenset[str], error: str) -> bool:
    return error in errors or ALL_ERRORS in errors


def choose_retry(policies: tuple[RetryPolicy, ...], used: Mapping[int, int], error: str) -> int | None:
    """Index of the policy to retry by, or None. Only the first policy that names the error counts."""
    for number, policy in enumerate(policies):
        if _names(policy.errors, error):
            return number if used.get(number, 0) < policy.max_attempts else None
    return None


def pause_ms(policy: RetryPolicy, retry: int) -> int:
    """Pause before retry number `retry` (from 1): min(maxInterval, interval * multiplier^(retry-1)), in ms."""
    if policy.interval_seconds == 0:
        return 0
    try:
        seconds = policy.interval_seconds * float(policy.multiplier) ** (retry - 1)
    except OverflowError:
        seconds = math.inf
    return round(min(seconds, policy.max_interval_seconds) * 1000)


def choose_catch(rules: tuple[CatchRule, ...], error: str) -> CatchRule | None:
    """The first catch rule that names the error."""
    return next((rule for rule in rules if _names(rule.errors, error)), None)
