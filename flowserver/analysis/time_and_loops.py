"""Rules about time: time-outs that never fire, what outlives the flow, loops without a pause or a bound."""

from heapq import heappop, heappush
from math import ceil, log
from typing import Final

from flowserver.analysis.subject import Subject
from flowserver.analysis.ways import loops_of
from flowserver.expressions.condition_nodes import And, Compare, Literal, Negate, Node, Not, Operator, Or
from flowserver.expressions.references import Reference, Root
from flowserver.language.arrows import LEAVE, Arrow, Way, arrows_from, options_of
from flowserver.language.diagnostics import shown
from flowserver.language.graph import (
    ChoiceStep,
    ParallelStep,
    PassStep,
    Pattern,
    RetryPolicy,
    Step,
    StepList,
    TaskStep,
    WaitStep,
)
from flowserver.language.reachability import nested_lists, pauses
from flowserver.machine.retry_and_catch import ALL_ERRORS, TASK_TIMEOUT, pause_ms

_ORDERS: Final = (Operator.LESS, Operator.LESS_OR_EQUAL, Operator.GREATER, Operator.GREATER_OR_EQUAL)
_WAY_STEPS_MAX: Final = 20
"""Steps between an option and its choice that are looked at."""

_PAUSES_ADDED_MAX: Final = 1_000
"""Pauses that are added one by one. Later ones are taken to be as long as the last, or to grow as powers do."""


def pauses_seconds(policy: RetryPolicy, retries: int) -> float:
    """How long the first pauses of a policy are together, in seconds; rounded after _PAUSES_ADDED_MAX of them."""
    longest_ms = policy.max_interval_seconds * 1000
    total_ms = 0.0
    for number in range(1, min(retries, _PAUSES_ADDED_MAX) + 1):
        pause = pause_ms(policy, number)
        if pause == longest_ms or policy.multiplier == 1:
            return (total_ms + (retries - number + 1) * pause) / 1000
        total_ms += pause
    return (total_ms + _later_pauses_ms(policy, retries)) / 1000


def _later_pauses_ms(policy: RetryPolicy, retries: int) -> float:
    """The pauses after the first _PAUSES_ADDED_MAX, which grow still: a geometric series up to the longest pause."""
    left = retries - _PAUSES_ADDED_MAX
    if left <= 0 or policy.interval_seconds == 0:
        return 0.0
    factor, longest_ms = float(policy.multiplier), policy.max_interval_seconds * 1000.0
    first_ms = min(policy.interval_seconds * 1000 * factor**_PAUSES_ADDED_MAX, longest_ms)
    growing = min(left, ceil(log(longest_ms / first_ms) / log(factor)) if factor > 1 else left)
    return first_ms * (factor**growing - 1) / (factor - 1) + (left - growing) * longest_ms


def check_time(subject: Subject) -> None:
    """Look at every time-out, wait and loop."""
    limit = subject.flow.timeout_seconds
    for _, _, step in subject.steps():
        if isinstance(step, TaskStep):
            if limit is not None:
                _check_task_time(subject, step, limit)
            elif step.pattern is Pattern.WAIT_FOR_CALLBACK and step.timeout_seconds is None:
                message = f"{shown(step.name)} waits for its callback without a time-out"
                hint = f"set `timeoutSeconds`, and catch `{TASK_TIMEOUT}`"
                subject.report("callback-without-timeout", subject.places.of_step(step.span, "pattern"), message, hint)
    if limit is not None:
        _check_waits(subject, subject.flow.root, 0, limit, {})
    for steps in subject.flow.lists:
        _check_loops(subject, steps, limit)
        _check_unchanged(subject, steps)


def _check_task_time(subject: Subject, step: TaskStep, limit: int) -> None:
    if step.timeout_seconds is not None and step.timeout_seconds > limit:
        span = subject.places.of_step(step.span, "timeoutSeconds")
        message = f"the flow times out after {limit} seconds, so this time-out of {step.timeout_seconds} never fires"
        subject.report("timeout-never-fires", span, message, "make it shorter than the flow's, or lengthen the flow's")
    for number, policy in enumerate(step.retry):
        together = pauses_seconds(policy, policy.max_attempts)
        span = subject.places.of_step(step.span, "retry", number)
        if together >= limit:
            message = f"the pauses take {together:g} seconds together, and the flow times out after {limit}"
            hint = "lower `maxAttempts`, `multiplier` or `maxIntervalSeconds`, or lengthen the flow's `timeoutSeconds`"
            subject.report("retry-outlives-flow", span, message, hint)
            continue
        retries_timeouts = bool(policy.errors & {ALL_ERRORS, TASK_TIMEOUT})
        longest = (policy.max_attempts + 1) * (step.timeout_seconds or 0) + together
        if step.timeout_seconds and step.timeout_seconds <= limit and retries_timeouts and longest >= limit:
            message = (
                f"{policy.max_attempts + 1} attempts of {step.timeout_seconds} seconds and their pauses take "
                f"{longest:g} seconds, and the flow times out after {limit}"
            )
            subject.report("attempts-outlive-flow", span, message, "what catches the last error may never run")


def _check_waits(subject: Subject, steps: StepList, begins: float, limit: int, known: dict[int, float | None]) -> None:
    """Report waits that cannot end in time; `begins` is the earliest second at which the list begins."""
    earliest = _earliest(steps, begins, known)
    for index, at in earliest.items():
        step = steps.steps[index]
        if index == LEAVE:
            continue
        if isinstance(step, WaitStep) and isinstance(step.duration, int) and at <= limit < at + step.duration:
            span = subject.places.of_step(step.span, "duration")
            ends = f"{at + step.duration:g}"
            message = f"this ends after {ends} seconds at the earliest; the flow times out after {limit}"
            subject.report("wait-outlives-flow", span, message, "lengthen the flow's `timeoutSeconds`, or wait less")
        for nested in nested_lists(step):
            _check_waits(subject, nested, at, limit, known)


def _earliest(steps: StepList, begins: float, known: dict[int, float | None]) -> dict[int, float]:
    """The earliest second at which each step that can be reached is entered, and LEAVE, by constant waits alone."""
    found: dict[int, float] = {}
    todo = [(begins, 0)]
    while todo:
        at, index = heappop(todo)
        if index in found:
            continue
        found[index] = at
        if index == LEAVE:
            continue
        for arrow in arrows_from(steps, index):
            takes = _shortest(steps.steps[index], arrow, known)
            if takes is not None and arrow.way is not Way.FAILED:
                heappush(todo, (at + takes, arrow.end))
    return found


def _shortest(step: Step, arrow: Arrow, known: dict[int, float | None]) -> float | None:
    """The least seconds that a step takes on a way; None if it never ends on it."""
    match step:
        case WaitStep():
            return float(step.duration) if isinstance(step.duration, int) else 0.0
        case ChoiceStep():
            nested = options_of(step)[arrow.number].steps
            return 0.0 if nested is None else _length(nested, known)
        case ParallelStep():
            lengths = [_length(branch, known) for branch in step.branches]
            return None if None in lengths else max((each for each in lengths if each is not None), default=0.0)
    return 0.0


def _length(steps: StepList, known: dict[int, float | None]) -> float | None:
    if steps.list_id not in known:
        known[steps.list_id] = _earliest(steps, 0, known).get(LEAVE)
    return known[steps.list_id]


def _check_loops(subject: Subject, steps: StepList, limit: int | None) -> None:
    for loop in loops_of(steps):
        inside = set(loop)
        leaving = [arrow for index in loop for arrow in arrows_from(steps, index) if arrow.end not in inside]
        if not leaving or not all(subject.is_entered(steps, index) for index in loop):
            continue  # `endless-loop` of the parser, unless it waits
        if any(_is_bound(steps.steps[index]) for index in loop):
            continue
        calls = [index for index in loop if isinstance(steps.steps[index], TaskStep)]
        left_out = {index for index, step in enumerate(steps.steps) if index not in inside or _takes_time(step)}
        hot = loops_of(steps, left_out)
        first = steps.steps[loop[0]]
        path = tuple(subject.path_step(steps.steps[index], "is in the loop") for index in loop)
        if hot and calls:
            path = tuple(subject.path_step(steps.steps[index], "is in the loop") for index in hot[0])
            first = steps.steps[hot[0][0]]
            message = f"the loop from {shown(first.name)} on makes calls without a pause, and no number bounds it"
            hint = "add a wait step, or count the turns and compare the count in a condition"
            subject.report("loop-without-pause", subject.places.name_of(first.span), message, hint, path)
        elif calls and limit is None and not any(_waits_in_time(steps.steps[index]) for index in loop):
            message = f"the loop from {shown(first.name)} on ends only if what it waits for comes"
            hint = "count the turns and compare the count in a condition, or set the flow's `timeoutSeconds`"
            subject.report("unbounded-loop", subject.places.name_of(first.span), message, hint, path)


def _takes_time(step: Step) -> bool:
    """Whether a step pauses, or waits for work that has a length of its own."""
    if isinstance(step, TaskStep) and step.pattern is Pattern.SYNC:
        return True
    if isinstance(step, ChoiceStep):
        return False  # an option that waits may not be taken
    return pauses(step)


def _waits_in_time(step: Step) -> bool:
    """Whether a step waits for a report, but not for ever: a turn of its loop begins only after a report."""
    return isinstance(step, TaskStep) and step.pattern is Pattern.WAIT_FOR_CALLBACK and step.timeout_seconds is not None


def _is_bound(step: Step) -> bool:
    """Whether a step of the loop compares by order, as a count is compared."""
    if not isinstance(step, ChoiceStep):
        return any(_is_bound(inner) for nested in nested_lists(step) for inner in nested.steps)
    own = any(_compares(option.condition.tree) for option in step.options if option.condition is not None)
    return own or any(_is_bound(inner) for nested in nested_lists(step) for inner in nested.steps)


def _compares(node: Node) -> bool:
    match node:
        case Compare():
            return any(operator in _ORDERS for operator, _ in node.rest)
        case And() | Or():
            return any(map(_compares, node.operands))
        case Not() | Negate():
            return _compares(node.operand)
        case Literal():
            return False
    return False


def _check_unchanged(subject: Subject, steps: StepList) -> None:
    """Report options that lead back to their choice past steps that change nothing."""
    for index, step in enumerate(steps.steps):
        if not isinstance(step, ChoiceStep) or step.output_mappings is not None or _differs_by_entry(step):
            continue
        arrows = subject.arrows_of(steps)[index]
        ways = {arrow: _unchanged_way(subject, steps, arrow) for arrow in arrows if arrow.end != LEAVE}
        if all(ways.get(arrow) is not None for arrow in arrows) or not subject.is_entered(steps, index):
            continue  # it has no exit, which is another finding, or is meant
        for arrow, way in ways.items():
            if way is not None:
                _report_unchanged(subject, step, arrow, [step, *way])


def _differs_by_entry(step: ChoiceStep) -> bool:
    """Whether the input of a choice is another each time it is entered: `$context.step.eventId` counts events."""
    sources = (mapping.source for mapping in step.input_mappings or ())
    read = [each.path.segments[:1] for each in sources if isinstance(each, Reference) and each.root is Root.CONTEXT]
    return () in read or ("step",) in read


def _unchanged_way(subject: Subject, steps: StepList, arrow: Arrow) -> list[Step] | None:
    """The steps on the way from an option back to its choice; None if it leads elsewhere, or one may change data."""
    choice = steps.steps[arrow.start]
    if not isinstance(choice, ChoiceStep) or options_of(choice)[arrow.number].steps is not None:
        return None
    way: list[Step] = []
    index = arrow.end
    while index != arrow.start:
        step = None if index == LEAVE else steps.steps[index]
        if not isinstance(step, (PassStep, WaitStep)) or step.output_mappings or len(way) == _WAY_STEPS_MAX:
            return None
        way.append(step)
        index = subject.arrows_of(steps)[index][0].end
    return way


def _report_unchanged(subject: Subject, choice: ChoiceStep, arrow: Arrow, loop: list[Step]) -> None:
    keys = ("choices", arrow.number, "goto") if arrow.number < len(choice.options) else ("default", "goto")
    span = subject.places.of_step(choice.span, *keys)
    message = f"nothing in this loop changes what {shown(choice.name)} reads, so it takes the same way for ever"
    path = tuple(subject.path_step(step, "is in the loop") for step in loop)
    subject.report("loop-changes-nothing", span, message, "lead back to the step that looks for news", path)
