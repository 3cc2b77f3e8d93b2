"""The most that one execution can take: seconds, calls, events and open lists, against the limits.

Counts the longest way through each list, with every retry, and the largest collection that the limit allows. A loop
has no bound, except by `events_max`.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from math import ceil, inf
from typing import Final

from flowserver.analysis.subject import STEP_UNITS, Subject
from flowserver.analysis.time_and_loops import pauses_seconds
from flowserver.analysis.ways import loops_of
from flowserver.base.json_values import dump_json_bytes
from flowserver.base.limits import Limits
from flowserver.expressions.references import Constant
from flowserver.language.arrows import LEAVE, Arrow, Way, arrows_from, options_of
from flowserver.language.diagnostics import shown
from flowserver.language.graph import (
    ChoiceStep,
    ForeachStep,
    FunctionTarget,
    Mappings,
    ParallelStep,
    Pattern,
    Step,
    StepList,
    TaskStep,
    WaitStep,
)

STEP_EVENTS: Final = 4
"""Events of a step that is entered, started, done and left."""

ATTEMPT_EVENTS: Final = 4
"""Events of an attempt: scheduled, started, submitted, ended."""

FUNCTION_SECONDS: Final = 86_400
"""The longest time-out that a function can be registered with."""


@dataclass(frozen=True, slots=True)
class Cost:
    """What something takes at most; `inf` if it has no bound. `lists` counts what `live_scopes_max` counts: lists that
    are open, or wait for a join, at once.
    """

    seconds: float = 0
    calls: float = 0
    events: float = 0
    lists: float = 0

    def then(self, other: "Cost") -> "Cost":
        """One after the other."""
        lists = max(self.lists, other.lists)
        return Cost(self.seconds + other.seconds, self.calls + other.calls, self.events + other.events, lists)

    def beside(self, other: "Cost") -> "Cost":
        """Both at the same time."""
        seconds = max(self.seconds, other.seconds)
        return Cost(seconds, self.calls + other.calls, self.events + other.events, self.lists + other.lists)

    def worse(self, other: "Cost") -> "Cost":
        """The more of each."""
        pairs = (
            (self.seconds, other.seconds),
            (self.calls, other.calls),
            (self.events, other.events),
            (self.lists, other.lists),
        )
        return Cost(*(max(pair) for pair in pairs))


def worst_case(subject: Subject) -> Cost:
    """The most that an execution of the flow takes; reports what can pass a limit."""
    cost = _Counting(subject).of_list(subject.flow.root).then(Cost(events=2))
    seconds = min(cost.seconds, subject.flow.timeout_seconds or subject.limits.execution_seconds_max)
    return Cost(seconds, cost.calls, cost.events, cost.lists + 1)


def check_sizes(subject: Subject) -> None:
    """Report constants that are more than a step's data may be. Its input counts together with what it puts out."""
    bytes_max = subject.limits.step_data_bytes_max
    for steps, index, step in subject.steps():
        given = _constant_bytes(step.input_mappings)
        if given > bytes_max:
            _report_constants(subject, step, "inputMappings", given, "the step always fails")
            continue
        is_caught = [arrow.way is Way.CAUGHT for arrow in _ways_of(subject, steps, index)]
        put_out = given + _constant_bytes(step.output_mappings)
        if put_out > bytes_max and not all(is_caught):
            _report_constants(subject, step, "outputMappings", put_out, "the step never succeeds")
        after_error = given + (_constant_bytes(step.error_mappings) if isinstance(step, TaskStep) else 0)
        if after_error > bytes_max and any(is_caught):
            _report_constants(subject, step, "errorMappings", after_error, "the step fails after each error")


def _ways_of(subject: Subject, steps: StepList, index: int) -> Iterable[Arrow]:
    """The ways from a step that can be gone, as far as that is known."""
    facts = subject.facts_of(steps)
    known = None if facts is None else facts.steps.get(index)
    return subject.arrows_of(steps)[index] if known is None else known.outputs


def _report_constants(subject: Subject, step: Step, attribute: str, size: int, effect: str) -> None:
    with_input = "" if attribute == "inputMappings" or not step.input_mappings else ", with those of its inputMappings"
    limit = f"the limit step_data_bytes_max of {subject.limits.step_data_bytes_max}"
    message = f"the constants are {size} bytes{with_input}, more than {limit}: {effect}"
    subject.report("passes-limit", subject.places.of_step(step.span, attribute), message)


def _constant_bytes(mappings: Mappings | None) -> int:
    """How many bytes the constants take; of entries with the same target the last one counts."""
    sources = {each.target: each.source for each in mappings or ()}
    constants = {target: source.value for target, source in sources.items() if isinstance(source, Constant)}
    return len(dump_json_bytes(constants)) if constants else 0


class _Counting:
    """Counts list by list, innermost first; each list once."""

    def __init__(self, subject: Subject) -> None:
        self._subject = subject
        self._limits: Limits = subject.limits
        self._lists: dict[int, Cost] = {}

    def of_list(self, steps: StepList) -> Cost:
        """The most that a list takes."""
        if steps.list_id not in self._lists:
            self._subject.work.spend(STEP_UNITS * len(steps.steps))
            self._lists[steps.list_id] = self._longest(steps)
        return self._lists[steps.list_id]

    def _longest(self, steps: StepList) -> Cost:
        costs = {
            arrow: self._of_step(step, arrow)
            for index, step in enumerate(steps.steps)
            for arrow in arrows_from(steps, index)
        }
        loops = loops_of(steps)
        if loops:
            inside = {index for loop in loops for index in loop}
            total = Cost()
            for arrow, cost in costs.items():
                endless = cost.calls > 0 and arrow.start in inside
                total = total.then(Cost(inf, inf if endless else cost.calls, inf, cost.lists))
            return total
        worst: dict[int, Cost] = {0: Cost()}
        for index in _in_order(steps):
            for arrow in arrows_from(steps, index):
                after = worst[index].then(costs[arrow])
                worst[arrow.end] = after if arrow.end not in worst else worst[arrow.end].worse(after)
        return worst.get(LEAVE, Cost())

    def _of_step(self, step: Step, arrow: Arrow) -> Cost:
        own = Cost(events=STEP_EVENTS)
        match step:
            case WaitStep():
                waits = step.duration if isinstance(step.duration, int) else self._limits.wait_seconds_max
                return own.then(Cost(seconds=waits))
            case TaskStep():
                return own.then(self._of_task(step))
            case ChoiceStep() if arrow.way is Way.OPTION:
                nested = options_of(step)[arrow.number].steps
                return own if nested is None else own.then(self.of_list(nested).beside(Cost(lists=1)))
            case ParallelStep():
                together = Cost()
                for branch in step.branches:
                    together = together.beside(self.of_list(branch).then(Cost(events=2))).beside(Cost(lists=1))
                return own.then(together)
            case ForeachStep():
                return own.then(self._of_foreach(step))
        return own

    def _of_task(self, step: TaskStep) -> Cost:
        self._check_retries(step)
        attempts = 1 + sum(policy.max_attempts for policy in step.retry)
        pauses = sum(pauses_seconds(policy, policy.max_attempts) for policy in step.retry)
        is_call = step.pattern is not Pattern.WAIT_FOR_CALLBACK and isinstance(step.target, FunctionTarget)
        seconds = step.timeout_seconds or (FUNCTION_SECONDS if is_call else self._limits.execution_seconds_max)
        return Cost(attempts * seconds + pauses, attempts, attempts * ATTEMPT_EVENTS)

    def _check_retries(self, step: TaskStep) -> None:
        """Report policies whose retries use up the events of an execution before its time is over."""
        limits = self._limits
        retries_max = limits.events_max // (ATTEMPT_EVENTS - 1)  # of a failed attempt: scheduled, started, failed
        seconds = self._subject.flow.timeout_seconds or limits.execution_seconds_max
        for number, policy in enumerate(step.retry):
            if policy.max_attempts > retries_max and pauses_seconds(policy, retries_max) < seconds:
                span = self._subject.places.of_step(step.span, "retry", number)
                message = f"more than {retries_max} retries pass events_max; {policy.max_attempts} are allowed"
                hint = "lower `maxAttempts`, or lengthen the pauses"
                self._subject.report("may-pass-limit", span, message, hint)

    def _of_foreach(self, step: ForeachStep) -> Cost:
        items, window = self._limits.foreach_items_max, self._limits.foreach_concurrency_max
        body = self.of_list(step.steps).then(Cost(events=2))
        self._check_foreach(step, body)
        rounds = ceil(items / window)
        lists = items + min(items, window) * body.lists
        return Cost(rounds * body.seconds, _times(items, body.calls), _times(items, body.events), lists)

    def _check_foreach(self, step: ForeachStep, body: Cost) -> None:
        limits, name = self._limits, shown(step.name)
        items = limits.events_max // (2 + _fewest(step.steps))
        span = self._subject.places.of_step(step.span, "iterationMapping")
        if items < limits.foreach_items_max:
            message = f"more than {items} iterations of {name} pass events_max; {limits.foreach_items_max} are allowed"
            self._subject.report("may-pass-limit", span, message, "let items be sub-flows, or split the collection")
        window = min(limits.foreach_items_max, limits.foreach_concurrency_max)
        if limits.foreach_items_max + window * body.lists > limits.live_scopes_max:
            each = max((limits.live_scopes_max - window) // window, 0)
            message = f"{window} iterations of {name} that hold more than {each} lists each pass live_scopes_max"
            self._subject.report("may-pass-limit", span, message, "let the inner loop be a sub-flow")


def _fewest(steps: StepList) -> int:
    """Events on the shortest way through a list; of nested lists only those of parallel branches count."""
    fewest: dict[int, int] = {0: 0}
    todo = [0]
    for index in todo:
        for arrow in arrows_from(steps, index):
            events = fewest[index] + STEP_EVENTS + _inner(steps.steps[index])
            if arrow.end not in fewest or events < fewest[arrow.end]:
                fewest[arrow.end] = events
                if arrow.end != LEAVE:
                    todo.append(arrow.end)
    return fewest.get(LEAVE, STEP_EVENTS)


def _inner(step: Step) -> int:
    if isinstance(step, TaskStep):
        return ATTEMPT_EVENTS - 1
    if isinstance(step, ParallelStep):
        return sum(2 + _fewest(branch) for branch in step.branches)
    return 0


def _times(count: float, each: float) -> float:
    return count * each if each else 0


def _in_order(steps: StepList) -> list[int]:
    """The positions that can be reached, each after all that lead to it; the list has no loop."""
    done: set[int] = set()
    order: list[int] = []
    work = [(0, False)]
    while work:
        index, is_left = work.pop()
        if is_left:
            order.append(index)
        elif index not in done:
            done.add(index)
            work.append((index, True))
            work.extend((arrow.end, False) for arrow in arrows_from(steps, index) if arrow.end != LEAVE)
    return order[::-1]
