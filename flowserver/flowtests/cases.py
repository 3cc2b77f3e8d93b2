"""What a flow test file says, checked: mocks, cases and what they expect. Plain data with places."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Final

from flowserver.base.json_values import JsonObject
from flowserver.flowtests.properties import Property
from flowserver.flowtests.real_calls import Callee
from flowserver.flowtests.simulation_settings import SimulationSettings
from flowserver.language.graph import Flow, Span
from flowserver.language.nodes import ListNode, MapNode, ScalarNode
from flowserver.machine.messages import Result

STARTED_MS: Final = 1_767_225_600_000
"""When a case begins unless it says otherwise: 2026-01-01T00:00:00Z."""

EXECUTION_NAME: Final = "test"
"""The name of an execution unless a case says otherwise."""


@dataclass(frozen=True, slots=True)
class Place:
    """A place in a file; `text` is the whole file's."""

    file: str
    text: str
    span: Span


@dataclass(frozen=True, slots=True)
class Source:
    """A definition and the file that it is from."""

    file: Path
    text: str
    flow: Flow

    def place(self, span: Span) -> Place:
        """A place in it."""
        return Place(str(self.file), self.text, span)


class Crash(StrEnum):
    """When the node that makes a call crashes; a node makes the call again then, unless it submits work twice."""

    BEFORE = "before"
    """After the commit that orders the call, before the call is made."""
    AFTER = "after"
    """When the call has been answered, before its result is committed."""


@dataclass(frozen=True, slots=True)
class Reply:
    """One entry of a mock's list."""

    span: Span
    result: Result | None
    """None: what the service itself would answer."""
    after_ms: int = 0
    times: int | None = 1
    """How many calls get it; None: all that follow."""
    is_never: bool = False
    """The call gets no answer."""
    crash: Crash | None = None
    """The node that makes the call crashes; for the call that is made again the next reply counts."""
    again_ms: int | None = None
    """When the report comes once more."""


@dataclass(frozen=True, slots=True)
class Mock:
    """What answers the calls of a step or resource."""

    key: str
    span: Span
    replies: tuple[Reply, ...] = ()
    real: Source | None = None
    """The definition that a sub-flow runs instead."""
    callee: Callee | None = None
    """What the calls really reach instead."""
    after_ms: int = 0
    """How long a real call takes in virtual time."""

    @property
    def answers_any_number(self) -> bool:
        """Whether its only reply is for all calls."""
        return len(self.replies) == 1 and self.replies[0].times is None


Table = Mapping[str, Mock]


@dataclass(frozen=True, slots=True)
class Mocks:
    """The mocks of a file or of one of its cases, by kind and key."""

    steps: Table = field(default_factory=dict)
    callbacks: Table = field(default_factory=dict)
    functions: Table = field(default_factory=dict)
    flows: Table = field(default_factory=dict)
    queues: Table = field(default_factory=dict)
    topics: Table = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ExpectedCalls:
    """Of one step or resource how many calls there are, and with which inputs."""

    key: str
    span: Span
    count: int | None = None
    inputs: ListNode | None = None
    is_exact: bool = True
    """Whether the inputs have no other members than those given."""


@dataclass(frozen=True, slots=True)
class Bound:
    """One comparison of a duration: `< 3d`."""

    operator: str
    duration_ms: int


@dataclass(frozen=True, slots=True)
class Expectation:
    """What a case expects; what it leaves out is not checked, except that without an error the flow succeeds."""

    span: Span
    status: ScalarNode | None = None
    output: MapNode | None = None
    output_includes: MapNode | None = None
    error: ScalarNode | None = None
    cause: ScalarNode | None = None
    cause_includes: ScalarNode | None = None
    path: ListNode | None = None
    path_includes: ListNode | None = None
    calls: tuple[ExpectedCalls, ...] = ()
    took: tuple[Bound, ...] = ()
    took_span: Span | None = None
    properties: tuple[Property, ...] = ()


@dataclass(frozen=True, slots=True)
class Case:
    """One test."""

    name: str
    span: Span
    input: JsonObject
    started_ms: int
    execution_name: str
    mocks: Mocks
    expect: Expectation


@dataclass(frozen=True, slots=True)
class TestFile:
    """A file of cases for one flow."""

    __test__ = False  # not a test of pytest's

    file: Path
    text: str
    source: Source
    flow_name: str
    mocks: Mocks
    cases: tuple[Case, ...]
    input: JsonObject | None = None
    """Of cases without one; None if the file has none."""
    started_ms: int = STARTED_MS
    simulation: SimulationSettings | None = None

    @property
    def inputs(self) -> tuple[JsonObject, ...]:
        """Every input that the file has, each once; those of its cases are examples for a simulation."""
        given = () if self.input is None else (self.input,)
        found: list[JsonObject] = []
        for each in (*given, *(case.input for case in self.cases if case.input)):
            if each not in found:
                found.append(each)
        return tuple(found)

    def place(self, span: Span) -> Place:
        """A place in the file."""
        return Place(str(self.file), self.text, span)

    @property
    def sources(self) -> tuple[Source, ...]:
        """Its flow and the sub-flows that run, each file once."""
        found = {self.source.file: self.source}
        for mocks in (self.mocks, *(case.mocks for case in self.cases)):
            for table in (mocks.flows, mocks.steps):
                for mock in table.values():
                    if mock.real is not None:
                        found.setdefault(mock.real.file, mock.real)
        return tuple(found.values())
