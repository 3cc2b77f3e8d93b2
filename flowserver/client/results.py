"""What the server answers, as typed objects. Fields that this version does not know are in `document`."""

from typing import Any, TypeVar

import msgspec

from flowserver.client.errors import Unreadable
from flowserver.client.step_parts import Attempt, Edge, Visit
from flowserver.client.steps_again import StepAgain, SubFlowAgain

Json = dict[str, Any]


class Result(msgspec.Struct, rename="camel", kw_only=True, frozen=True):
    """An object of an answer. Instants are texts, RFC 3339 in UTC."""

    document: Json = {}
    """All that the server sent, with its own names."""


R = TypeVar("R", bound=Result)


class CurrentStep(msgspec.Struct, frozen=True):
    """A step that an execution is at."""

    path: str
    """With branch and iteration: `pack[17].label`."""
    status: str
    """`Running`, `Waiting`, `Retrying`, `WaitingForToken`, `WaitingForSubFlow`, `WaitingForInvocation`,
    `WaitingForRedrive`; after the end `Failed` or `Aborted`."""
    since: str | None = None
    until: str | None = None
    attempts: int = 0
    child: str | None = None
    """FLOW/NAME of the execution of a sub-flow that it waits for."""


class Execution(Result, frozen=True):
    """One run of a flow. Lists and `documents=False` show it without input, output and definition."""

    flow_name: str
    name: str
    status: str
    started_time: str
    stopped_time: str | None = None
    error: str | None = None
    cause: str | None = None
    parked_error: str | None = None
    version: int | None = None
    alias: str | None = None
    failed_step: str | None = None
    on_retries_exhausted: str = "fail"
    """The flow's setting at its start: `fail` or `waitForRedrive`."""
    waiting_steps: int = 0
    """How many of its steps have failed and wait for a redrive."""
    redrive_count: int = 0
    last_redrive_time: str | None = None
    current_steps: list[CurrentStep] | None = None
    """None unless they were asked for."""
    current_step_count: int | None = None
    parent: str | None = None
    """FLOW/NAME of the execution that gets the result of this one; only with the current steps."""
    input: Json = {}
    output: Json | None = None
    definition: str = ""

    @property
    def ended(self) -> bool:
        """Whether it has ended, well or not."""
        return self.status != "Running"

    @property
    def succeeded(self) -> bool:
        """Whether it has ended well."""
        return self.status == "Succeeded"

    @property
    def path(self) -> str:
        """FLOW/NAME, as the command line writes it."""
        return f"{self.flow_name}/{self.name}"


class RefusedRedrive(msgspec.Struct, frozen=True, rename="camel"):
    """An execution that a bulk redrive has left as it was."""

    name: str
    reason: str
    code: str = ""
    """The error of a redrive of this execution alone: `ExecutionEndReported` if its caller, as of a
    sub-flow, has taken its end; empty if the server does not tell."""
    redrive_instead: str | None = None
    """FLOW/NAME of that one, if it can be redriven."""


class ManyRedriven(Result, frozen=True):
    """What one request of a bulk redrive has done. Names are without the flow's."""

    executions: list[str]
    refused: list[RefusedRedrive]
    repeated: list[str] = []
    """What a request with the same token had redriven, and what has failed again; left as it was."""
    next_token: str | None = None


class StepKept(msgspec.Struct, frozen=True, rename="camel"):
    """A step whose results a redrive would keep, how often it succeeded, and the later step that undid its work."""

    step: str
    times: int
    undone_by: str | None = None


class RedrivePlan(Result, frozen=True):
    """What a redrive would do."""

    redrivable: bool
    reasons: list[str]
    """Why it cannot be made."""
    again_count: int = 0
    """Steps that would run again; `again` has the first of them."""
    failed_count: int = 0
    aborted_count: int = 0
    calls_again_count: int = 0
    """Calls of functions that would be made again with the same input and idempotency key."""
    again: list[StepAgain] = []
    kept_count: int = 0
    kept: list[StepKept] = []
    children: list[SubFlowAgain] = []


class Event(Result, frozen=True):
    """One event of an execution's history."""

    event_id: int
    type: str
    time: str
    schedule_event_id: int = 0
    step_name: str = ""
    step_path: str | None = None
    """With the numbers of branches and iterations, if it was asked for: `pack[17].label`."""
    detail: Json = {}


class Flow(Result, frozen=True):
    """A flow. Lists show it without its definition."""

    name: str
    description: str = ""
    created_time: str = ""
    last_modified_time: str = ""
    retention_days: int | None = None
    on_retries_exhausted: str = "fail"
    """What its executions do if a step fails for good: `fail` or `waitForRedrive`."""
    definition: str = ""
    etag: str | None = None
    """Names this state of the flow; give it to `put_flow` so that nothing newer is overwritten."""
    warnings: list[Json] = []
    """What the server warned of when it was deployed: findings with `id`, `message`, `line` and `column`."""
    is_new: bool = False
    """Whether the request created it."""


class DefinitionGraph(Result, frozen=True):
    """The steps of a definition and the ways between them, with the fields of the API."""

    nodes: list[Json]
    """The steps in document order; the number of a step is its `id`."""
    lists: list[Json]
    """The lists of steps, with the numbers of their `nodes`."""
    edges: list[Json]
    """Each `from` one step `to` another; None at the end of a list."""


class DefinitionTests(Result, frozen=True):
    """What has come of the tests of a definition, with the fields of the API."""

    passed: bool
    mistakes: list[Json]
    """Of the test file; if it has any, none of its tests has run."""
    tests: list[Json]
    warnings: list[Json]
    coverage: Json | None = None


class Function(Result, frozen=True):
    """A registered function."""

    service: str
    function: str
    url: str
    timeout_seconds: int = 0
    warnings: list[Json] = []
    """What is doubtful about a registration that was just made."""

    @property
    def path(self) -> str:
        """SERVICE/FUNCTION; the function alone if it has no service."""
        return self.function if self.service == WITHOUT_SERVICE else f"{self.service}/{self.function}"


class Secret(Result, frozen=True):
    """A secret, without its value."""

    name: str
    created_time: str
    last_modified_time: str
    used_by: list[Json] = []
    """What refers to it: objects with `kind` and `name`."""


class Invocation(Result, frozen=True):
    """An asynchronous invocation of a function."""

    service: str
    function: str
    invocation_id: str
    status: str
    created_time: str = ""
    parked_error: str | None = None


class Schedule(Result, frozen=True):
    """When a flow starts by itself."""

    flow_name: str
    name: str
    cron_expression: str
    time_zone: str = "UTC"
    enabled: bool = True
    note: str = ""
    overlap: str = ""
    next_time: str | None = None
    started: int = 0
    missed: int = 0
    skipped: int = 0
    """Ticks that the overlap policy dropped, and those that had an execution already."""
    last_missed: Json | None = None
    """The last missed run: `time` and `reason`."""
    last_skipped: Json | None = None
    """The last skipped run: `time` and `reason`."""
    waiting: int = 0
    """Starts and backfills that wait."""
    next_times: list[str] = []
    """The next ten ticks; lists show none."""
    queue: list[Json] = []
    """The first ten of those that wait: `time`, `kind` and, of a backfill, `until`; lists show none."""
    recent: list[Json] = []
    """The last ten executions, the newest first; lists show none."""
    warnings: list[Json] = []
    """What is doubtful about it, such as a qualifier that does not exist: findings with `id` and `message`."""

    @property
    def path(self) -> str:
        """FLOW/NAME, as the command line writes it."""
        return f"{self.flow_name}/{self.name}"


class Task(Result, frozen=True):
    """A task that waits for a report with its token."""

    flow_name: str
    execution_name: str
    task_token: str
    step_name: str = ""
    entered_event_id: int = 0
    entered_time: str = ""
    due_time: str | None = None


class Version(Result, frozen=True):
    """A published definition of a flow. Lists show it without its text."""

    version: int
    description: str = ""
    created_time: str = ""
    definition: str = ""
    is_new: bool = False
    """Whether the request published it."""


class Alias(Result, frozen=True):
    """A name for one or two versions of a flow."""

    name: str
    description: str = ""
    routes: list[Json] = []
    """Objects with `version` and `weight`."""


class Queue(Result, frozen=True):
    """A queue. `queues()` gives it without the number of its messages."""

    name: str
    ready: int = 0
    """Messages that a receive gets."""
    received: int = 0
    """Messages that were received, and are neither deleted nor visible yet."""
    delayed: int = 0
    """Messages that are not visible for the first time yet."""


class Topic(Result, frozen=True):
    """A topic. `topics()` gives it without its subscriptions and the number of its messages."""

    name: str
    undelivered: int = 0
    subscriptions: list[str] = []


class Iterations(msgspec.Struct, frozen=True):
    """The iterations of a foreach."""

    total: int
    done: int
    failed: int
    running: int
    aborted: int = 0


class Iteration(Result, frozen=True):
    """What became of one iteration of a foreach."""

    index: int
    path: str
    """`pack[17]`: its events can be listed by it."""
    status: str
    first: str
    last: str
    step: str | None = None
    """The step in it that was entered last."""
    attempts: int = 0
    error: str | None = None


class Step(Result, frozen=True):
    """What became of one step of an execution; `pack[].label` is that step in all iterations of `pack`."""

    path: str
    status: str
    first: str
    last: str
    began: str | None = None
    """When its last run began; None if the server does not tell."""
    entered: int = 0
    """How often it was entered: in a loop or in iterations many times."""
    running: int = 0
    """Entries that run."""
    waiting: int = 0
    """Of these, those that have failed and wait for a redrive."""
    attempts: int = 0
    last_attempts: list[Attempt] = []
    """The last ten of them; none of a step in an iteration."""
    redrives: int = 0
    error: str | None = None
    iterations: Iterations | None = None
    visits: list[Visit] = []
    """The first and the last ten of its entries."""
    visit_count: int = 0
    options: dict[str, int] = {}
    """How often a choice took each option: by its number, `default`, or `none`."""
    edges: list[Edge] = []


class Nothing(Result, frozen=True):
    """An answer of which nothing is read but its document."""


WITHOUT_SERVICE = "-"
"""How a path writes the service of a function that has none."""


def typed(kind: type[R], document: object, **further: object) -> R:
    """The object as that kind of result; raises Unreadable if it is none, since then no flowserver has answered."""
    try:
        if not isinstance(document, dict):
            raise TypeError
        return msgspec.convert({**document, **further, "document": document}, kind)
    except (msgspec.ValidationError, TypeError):
        raise Unreadable("what answers is not a flowserver, or one of another version") from None
