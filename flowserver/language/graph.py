"""The compiled definition: immutable, typed, with every expression compiled and every span kept.

Made by `language.parser`, read by `machine`. Nothing here refers to YAML.
Step lists are numbered in document order (`StepList.list_id`), which is how a stored scope finds its place again.
"""

from collections.abc import Mapping as ReadOnlyMapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Literal

from flowserver.base.json_values import Json
from flowserver.expressions.conditions import Condition
from flowserver.expressions.paths import Path
from flowserver.expressions.references import Source


@dataclass(frozen=True, slots=True)
class Span:
    """A place in the definition's text; lines and columns count from 1, the end is exclusive."""

    line: int
    column: int
    end_line: int
    end_column: int


class Pattern(StrEnum):
    """When a task step ends (the service-integration patterns of the language)."""

    REQUEST_RESPONSE = "requestResponse"
    SYNC = "sync"
    WAIT_FOR_CALLBACK = "waitForCallback"


ChildLifecycle = Literal["owned", "independent"]
"""Whether a `sync` step stops the execution that it started when it no longer waits for it."""


@dataclass(frozen=True, slots=True)
class FunctionTarget:
    """`acs:fc:…:services/{service}[.{qualifier}]/functions/{function}`; service is "" in the service-less form."""

    arn: str
    service: str
    qualifier: str
    function: str


@dataclass(frozen=True, slots=True)
class FlowTarget:
    """`acs:fnf:…:flow/{flow_name}`."""

    arn: str
    flow_name: str


@dataclass(frozen=True, slots=True)
class QueueTarget:
    """`acs:mns:…:/queues/{queue}/messages`: a message is sent to the queue."""

    arn: str
    queue: str


@dataclass(frozen=True, slots=True)
class TopicTarget:
    """`acs:mns:…:/topics/{topic}/messages`: a message is published to the topic."""

    arn: str
    topic: str


@dataclass(frozen=True, slots=True)
class ActionTarget:
    """`action: {service}:{api}`, for example `fnf:StartExecution`."""

    action: str
    service: str
    api: str


Target = FunctionTarget | FlowTarget | QueueTarget | TopicTarget | ActionTarget


@dataclass(frozen=True, slots=True)
class Mapping:
    """One entry of inputMappings, outputMappings or errorMappings; `target` is a literal key."""

    target: str
    source: Source


Mappings = tuple[Mapping, ...]


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """One entry of `retry`; intervals in seconds."""

    errors: frozenset[str]
    interval_seconds: int = 1
    max_interval_seconds: int = 86_400
    max_attempts: int = 3
    multiplier: float = 2.0


@dataclass(frozen=True, slots=True)
class CatchRule:
    """One entry of `catch`; `goto` names a sibling of the task."""

    errors: frozenset[str]
    goto: str


@dataclass(frozen=True, slots=True, kw_only=True)
class StepBase:
    """What every step has. Mappings are None when the attribute is absent, () when it is an empty list."""

    name: str
    span: Span
    end: bool = False
    input_mappings: Mappings | None = None
    output_mappings: Mappings | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class PassStep(StepBase):
    """`pass`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SucceedStep(StepBase):
    """`succeed`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FailStep(StepBase):
    """`fail`; error and cause are constants, already defaulted to `FnF.Failed` and ""."""

    error: str = "FnF.Failed"
    cause: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class WaitStep(StepBase):
    """`wait`: exactly one of the two is set. duration: seconds or a path; timestamp: ms since the epoch or a path."""

    duration: int | Path | None = None
    timestamp: int | Path | None = None


@dataclass(frozen=True, slots=True)
class ParamPath:
    """A `$` or `$.path` inside serviceParams; the whole-input form is `path.is_root`."""

    path: Path


ParamValue = Json | ParamPath
"""A serviceParams value: constants, ParamPath, or lists and dicts that hold them at any depth."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskStep(StepBase):
    """`task`; service_params is None when absent."""

    target: Target
    pattern: Pattern = Pattern.REQUEST_RESPONSE
    service_params: dict[str, ParamValue] | None = None
    timeout_seconds: int | None = None
    retry: tuple[RetryPolicy, ...] = ()
    catch: tuple[CatchRule, ...] = ()
    error_mappings: Mappings | None = None
    child_lifecycle: ChildLifecycle | None = None

    @property
    def awaits_sub_flow(self) -> bool:
        """Whether the step waits for the end of the execution that it starts."""
        return isinstance(self.target, FlowTarget) and self.pattern is Pattern.SYNC


@dataclass(frozen=True, slots=True)
class Option:
    """A choice option or its default: steps first, then the goto, both optional."""

    condition: Condition | None
    steps: "StepList | None"
    goto: str | None

    @property
    def is_always_taken(self) -> bool:
        """Whether its condition is the word `true`, so that no option after it is ever taken."""
        return self.condition is not None and self.condition.text.strip() == "true"


@dataclass(frozen=True, slots=True, kw_only=True)
class ChoiceStep(StepBase):
    """`choice`; the default option has condition None."""

    options: tuple[Option, ...] = ()
    default: Option | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ParallelStep(StepBase):
    """`parallel`; one step list per branch."""

    branches: tuple["StepList", ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ForeachStep(StepBase):
    """`foreach`; `collection` is a path into the step's input, `index` counts from 0."""

    collection: Path
    item: str
    index: str | None
    steps: "StepList"


Step = PassStep | SucceedStep | FailStep | WaitStep | TaskStep | ChoiceStep | ParallelStep | ForeachStep


@dataclass(frozen=True, slots=True)
class StepList:
    """A serial list of steps; `position` maps each name to its index. Names are unique within one list."""

    list_id: int
    steps: tuple[Step, ...]
    position: ReadOnlyMapping[str, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Flow:
    """A whole definition. `lists[i].list_id == i`; `lists[0]` is the flow's own list."""

    version: str
    lists: tuple[StepList, ...]
    input_mappings: Mappings | None = None
    output_mappings: Mappings | None = None
    timeout_seconds: int | None = None
    name: str | None = field(default=None)

    @property
    def root(self) -> StepList:
        """The flow's own list of steps."""
        return self.lists[0]
