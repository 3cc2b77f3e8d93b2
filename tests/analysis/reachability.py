"""Looks with Hypothesis for what `prove` calls possible: an input and answers with which it happens.

Goals of a flow are its steps that may be entered and passed, the options, retry policies and catch rules that may be
taken, the time-outs that may fire, and the ways of `missing-on-path` and `step-fails-on-path`. Hypothesis draws the
values of keys, the outcomes of steps and a seed for all else. Then it looks for each goal that is left: its target is
how near a run came to the step.
"""

from collections import Counter, deque
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from random import Random
from typing import Final

from hypothesis import HealthCheck, Phase, Verbosity, given, settings, target
from hypothesis import strategies as st

from flowserver.analysis.data_flow import StepFacts
from flowserver.analysis.proving import prove
from flowserver.base.json_values import JsonObject, dump_json, load_json
from flowserver.base.limits import Limits
from flowserver.expressions.conditions import holds
from flowserver.expressions.paths import MISSING, find
from flowserver.language.arrows import LEAVE, Arrow, Way, arrows_from
from flowserver.language.graph import (
    ActionTarget,
    CatchRule,
    ChoiceStep,
    Flow,
    ParallelStep,
    RetryPolicy,
    Step,
    StepList,
    TaskStep,
)
from flowserver.language.parser import parse
from flowserver.language.reachability import nested_lists
from flowserver.machine.events import EventType
from flowserver.machine.retry_and_catch import ALL_ERRORS
from flowserver.machine.steps.choice import DEFAULT_OPTION
from tests.analysis.impossible import CLAIMED, Claims, Fact, facts_of, selected
from tests.analysis.random_flows import definition_text
from tests.analysis.random_runs import SILENT, Plan, RandomWorld, Vocabulary
from tests.analysis.soundness import known_of
from tests.simulation.generator import Generator

FIRST_EXAMPLES: Final = 100
MORE_EXAMPLES: Final = 150
"""For each goal that the first examples do not reach."""

LIMITS: Final = Limits(events_max=500, foreach_items_max=4_000)
"""Of all runs: a loop without an end is short."""

CONSTANT: Final = "a constant decides"
EARLIER: Final = "an earlier option holds whenever this one does"
OF_ACTION: Final = "the errors of an action begin with its service"
BRANCH: Final = "a branch of it never ends well"
NOT_FOUND: Final = "not found"


@dataclass
class Search:
    """Which goals of flows were reached."""

    goals: Counter[str] = field(default_factory=Counter)
    reached: Counter[str] = field(default_factory=Counter)
    left: dict[str, str] = field(default_factory=dict)
    """The goals that were not reached although their step was entered, each with a reason. Others are behind these."""

    def add(self, other: "Search") -> None:
        """Add another search."""
        self.goals += other.goals
        self.reached += other.reached
        self.left |= other.left

    @property
    def share(self) -> float:
        """How many of the goals were reached."""
        return self.reached.total() / self.goals.total() if self.goals else 1.0

    def __str__(self) -> str:
        kinds = ", ".join(f"{kind} {self.reached[kind]:,} of {count:,}" for kind, count in sorted(self.goals.items()))
        behind = self.goals.total() - self.reached.total() - len(self.left)
        reasons = ", ".join(f"{reason}: {count:,}" for reason, count in Counter(self.left.values()).most_common())
        return (
            f"{self.reached.total():,} of {self.goals.total():,} goals reached ({self.share:.1%}; {kinds}). "
            f"Of the others {behind:,} are behind these: {reasons or 'none'}"
        )


def random_flow_of_the_simulation(seed: int) -> str:
    """A definition by the generator of the simulation."""
    return definition_text(Generator(Random(f"reach {seed}")).definition())


def search_seeds(seeds: Iterable[int], more: int = MORE_EXAMPLES) -> Search:
    """Search in random flows."""
    total = Search()
    for seed in seeds:
        total.add(search(f"flow {seed}", random_flow_of_the_simulation(seed), LIMITS, more))
    return total


def search(name: str, text: str, limits: Limits, more: int = MORE_EXAMPLES) -> Search:
    """Look for runs that reach the goals of a flow. The result is the same each time."""
    flow = parse(text, limits, allow_ref_tags=True).flow
    goals = set(goals_of(text, flow, limits))
    seeker = _Seeker(flow, Vocabulary(text, flow), limits)
    seeker.run(FIRST_EXAMPLES)
    for goal in sorted(goals, key=str):
        if goal not in seeker.seen:
            seeker.run(more, goal)
    found = Search(Counter(str(goal[0]) for goal in goals), Counter(str(goal[0]) for goal in goals & seeker.seen))
    roots = (goal for goal in sorted(goals - seeker.seen, key=str) if ("entered", goal[1]) in seeker.seen)
    found.left = {f"{name}: {' '.join(map(str, goal))}": seeker.reason_of(goal) for goal in roots}
    return found


# Goals


def goals_of(text: str, flow: Flow, limits: Limits) -> Iterator[Fact]:
    """What may happen, as far as the analysis knows."""
    claims = Claims(text, flow)
    never: set[Fact] = set()
    for finding in prove(text, limits).findings:
        if finding.id in CLAIMED:
            never |= set(claims.forbidden_by(finding))
        elif finding.id in ("missing-on-path", "step-fails-on-path"):
            yield from claims.shown_by(finding)
    known = known_of(flow)
    for steps, index in _ways(flow, known, never):
        step = steps.steps[index]
        yield ("entered", step.name)
        if ("passed", step.name) in never:
            continue
        arrows = list(_arrows(steps, index, known, never))
        if arrows:
            yield ("passed", step.name)
        if isinstance(step, ChoiceStep):
            yield from (("took", step.name, _number(step, arrow.number)) for arrow in arrows)
        if isinstance(step, TaskStep):
            yield from (goal for goal in _goals_of_task(step) if goal not in never)


def _ways(flow: Flow, known: dict[str, StepFacts], never: set[Fact]) -> Iterator[tuple[StepList, int]]:
    """The steps to which a way leads that no finding calls impossible."""
    todo: list[tuple[StepList, int]] = [(flow.root, 0)]
    found = {(0, 0)}
    for steps, index in todo:
        step = steps.steps[index]
        yield steps, index
        if ("passed", step.name) in never and not isinstance(step, ParallelStep):
            continue
        arrows = list(_arrows(steps, index, known, never))
        after = [(steps, arrow.end) for arrow in arrows if arrow.end != LEAVE]
        for way in (*after, *((nested, 0) for nested in _nested(step, arrows))):
            key = way[0].list_id, way[1]
            if key not in found and way[0].steps[way[1]].name in known:
                found.add(key)
                todo.append(way)


def _arrows(steps: StepList, index: int, known: dict[str, StepFacts], never: set[Fact]) -> Iterator[Arrow]:
    """The ways that are left: without catch rules that never match, and options that read only what is never there."""
    step = steps.steps[index]
    for arrow in arrows_from(steps, index):
        if arrow not in known[step.name].outputs:
            continue
        if arrow.way is Way.CAUGHT and ("caught", step.name, arrow.number) in never:
            continue
        if isinstance(step, ChoiceStep) and arrow.number < len(step.options):
            condition = step.options[arrow.number].condition
            paths = [] if condition is None else list(selected(condition.tree))
            if condition is not None and paths and all(("read", step.name, each.path.text) in never for each in paths):
                if not holds(condition, {}):
                    continue
                yield arrow
                return
        yield arrow


def _nested(step: Step, arrows: list[Arrow]) -> Iterator[StepList]:
    if not isinstance(step, ChoiceStep):
        yield from nested_lists(step)
        return
    numbers = {_number(step, arrow.number) for arrow in arrows}
    for number, option in (*enumerate(step.options), (DEFAULT_OPTION, step.default)):
        if number in numbers and option is not None and option.steps is not None:
            yield option.steps


def _number(step: ChoiceStep, number: int) -> int:
    return number if number < len(step.options) else DEFAULT_OPTION


def _goals_of_task(step: TaskStep) -> Iterator[Fact]:
    yield from (("caught", step.name, number) for number in range(len(step.catch)))
    yield from (("retried", step.name, number) for number, each in enumerate(step.retry) if each.max_attempts)
    if step.timeout_seconds is not None:
        yield ("timed out", step.name)


# Search


class _ReachedError(Exception):
    """A run did what is looked for: for Hypothesis a failure, with which it ends."""


class _Seeker:
    """Runs a flow with choices that Hypothesis makes, and keeps all that has happened."""

    def __init__(self, flow: Flow, words: Vocabulary, limits: Limits) -> None:
        self.seen: set[Fact] = set()
        self._flow, self._words, self._limits = flow, words, limits
        self._steps = {step.name: step for steps in flow.lists for step in steps.steps}
        self._inputs: dict[str, list[JsonObject]] = {}
        """The inputs of choices."""

    def run(self, examples: int, goal: Fact | None = None) -> None:
        """Make so many runs, or fewer if one reaches the goal."""
        near = None if goal is None else _distances(self._flow, str(goal[1]))

        @settings(
            max_examples=examples,
            derandomize=True,
            database=None,
            deadline=None,
            verbosity=Verbosity.quiet,
            phases=[Phase.generate, Phase.target],
            suppress_health_check=list(HealthCheck),
        )
        @given(st.integers(0, 2**32), self._plans(goal))
        def execute(seed: int, plan: Plan) -> None:
            world = RandomWorld(self._flow, self._words, Random(seed), self._limits, plan=plan)
            world.run_bounded()
            facts = facts_of(world)
            self.seen |= facts
            self._note_choices(world)
            if goal in facts:
                raise _ReachedError
            if near is not None:
                _aim(facts, near)

        with suppress(_ReachedError):
            execute()

    def _plans(self, goal: Fact | None) -> st.SearchStrategy[Plan]:
        values = {key: st.sampled_from(self._words.candidates(key)) for key in self._words.compared}
        any_of = st.sampled_from(["", "", "", SILENT, *self._words.errors])
        outcomes = {name: any_of for name, step in self._steps.items() if isinstance(step, TaskStep)}
        if goal is not None and (wanted := self._outcomes_for(goal)):
            outcomes[str(goal[1])] = st.sampled_from(wanted)
        return st.builds(
            Plan,
            st.one_of(st.fixed_dictionaries(values), st.fixed_dictionaries({}, optional=values)),
            st.fixed_dictionaries({}, optional=outcomes),
        )

    def _outcomes_for(self, goal: Fact) -> list[str]:
        """What the goal's step has to come to; nothing if that makes no difference."""
        what, name, *rest = goal
        step = self._steps[str(name)]
        if what == "timed out":
            return [SILENT]
        if what not in ("caught", "retried") or not isinstance(step, TaskStep):
            return []
        rules: tuple[CatchRule | RetryPolicy, ...] = step.catch if what == "caught" else step.retry
        return ["E3" if each == ALL_ERRORS else each for each in sorted(rules[int(rest[0])].errors)]

    def _note_choices(self, world: RandomWorld) -> None:
        for event in world.events:
            if event.type is EventType.STEP_STARTED and isinstance(self._steps[event.step_name], ChoiceStep):
                self._inputs.setdefault(event.step_name, []).append(load_json(event.detail)["input"])

    def reason_of(self, goal: Fact) -> str:
        """Why a goal was not reached, as far as the runs show it."""
        what, name, *rest = goal
        step = self._steps[str(name)]
        if isinstance(step, ParallelStep):
            return BRANCH
        if what == "took" and isinstance(step, ChoiceStep):
            return _reason_of_option(step, int(rest[0]), self._inputs[step.name])
        if isinstance(step, TaskStep) and isinstance(step.target, ActionTarget) and what in ("caught", "retried"):
            begins = ("FC.", "FnF.", f"{step.target.service}.", "E3")
            if not any(each.startswith(begins) for each in self._outcomes_for(goal)):
                return OF_ACTION
        return NOT_FOUND


def _reason_of_option(step: ChoiceStep, number: int, inputs: list[JsonObject]) -> str:
    """Whether all runs had the same values where the option, or one before it, reads."""
    conditions = [option.condition for option in step.options if option.condition is not None]
    deciding = conditions if number == DEFAULT_OPTION else conditions[: number + 1]
    own = deciding[-1:] if number != DEFAULT_OPTION else deciding
    if number != DEFAULT_OPTION and any(holds(conditions[number], given) for given in inputs):
        always = any(all(holds(each, given) for given in inputs) for each in deciding[:-1])
        return CONSTANT if always else EARLIER
    paths = {node.path for condition in own for node in selected(condition.tree)}
    seen = {path: {_shown(find(path, given)) for given in inputs} for path in paths}
    always = any(all(holds(each, given) for given in inputs) for each in deciding)
    return CONSTANT if always or any(len(each) == 1 for each in seen.values()) else NOT_FOUND


def _shown(value: object) -> str:
    return "" if value is MISSING else dump_json(value)  # type: ignore[arg-type]


def _aim(facts: set[Fact], near: dict[str, int]) -> None:
    entered = [near[str(name)] for what, name, *_ in facts if what == "entered" and name in near]
    target(-float(min(entered, default=1_000)))


def _distances(flow: Flow, goal: str) -> dict[str, int]:
    """How many steps each step is before the goal."""
    before: dict[str, list[str]] = {}
    for steps in flow.lists:
        for index, step in enumerate(steps.steps):
            for arrow in arrows_from(steps, index):
                if arrow.end != LEAVE and arrow.way is not Way.FAILED:
                    before.setdefault(steps.steps[arrow.end].name, []).append(step.name)
            for nested in nested_lists(step):
                before.setdefault(nested.steps[0].name, []).append(step.name)
    found = {goal: 0}
    todo = deque([goal])
    while todo:
        name = todo.popleft()
        for other in before.get(name, ()):
            if other not in found:
                found[other] = found[name] + 1
                todo.append(other)
    return found
