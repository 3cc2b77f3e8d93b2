"""The state of an execution between two turns: a header and a tree of scopes.

A scope is one running list of steps with its `$local`. Its `wait` is the one stored reason why it will go on: an
execution's scopes alone say what must happen next.

Documents (`local`, `step_input`) are replaced, never edited in place, so events may refer to them. A nested list's
`$input` is not stored: it follows from the parent's step. A step's own mapped input is stored while the step waits.
The bytes of all documents are counted as they change and are bounded; the header has the count, so a batch knows what
it would read before it reads it.
"""

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final, NamedTuple

from flowserver.base.json_values import JsonObject
from flowserver.machine.data_sizes import Sizes


class Status(StrEnum):
    """Execution statuses, in the words of the API."""

    RUNNING = "Running"
    SUCCEEDED = "Succeeded"
    FAILED = "Failed"
    STOPPED = "Stopped"
    TIMED_OUT = "TimedOut"


class WaitKind(StrEnum):
    """Why a scope is not running right now, and so what wakes it; `transitions` says what follows what."""

    __hash__ = str.__hash__  # Enum's own is written in Python, and each change of a wait looks its kind up

    READY = "ready"
    """Nothing: the next turn goes on with it."""
    TIMER = "timer"
    """`wake_at`: a wait step or the pause before a retry."""
    TASK = "task"
    """A function call or submission that a node makes; `wake_at` is the attempt's deadline, if it has one."""
    TOKEN = "token"  # noqa: S105 - a kind of wait, no secret
    """A report with the step's task token; `wake_at` as for TASK."""
    CHILD = "child"
    """The end of the execution that a `sync` sub-flow step started; `wake_at` as for TASK."""
    JOIN = "join"
    """The scopes it opened (branches, iterations, a choice's steps)."""
    REDRIVE = "redrive"
    """A redrive of the execution: its step has failed, and the flow's setting is to wait. The execution's deadline, or
    a stop, ends this wait, too."""
    DONE = "done"
    """Nothing any more: it has failed, and this turn ends the execution. No turn leaves such a scope."""


EMPTY_BYTES: Final = 2
"""What an empty object takes."""


class Finished(NamedTuple):
    """The result of a finished branch or iteration, kept for the join."""

    local: JsonObject
    document_bytes: int
    """Of `local` as compact JSON."""


@dataclass(slots=True)
class Scope:
    """One running list of steps.

    `item` numbers the branch or iteration (0 for a choice's steps). `wait_id` is new for every wait, so that a late
    message is recognised; a task attempt keeps one wait id from its call to its report.
    """

    scope_id: int
    parent_id: int | None
    list_id: int
    item: int
    last_event_id: int
    local: JsonObject = field(default_factory=dict)
    step_index: int = 0
    step_input: JsonObject | None = None
    entered_event_id: int = 0
    wait: WaitKind = WaitKind.READY
    wait_id: int = 0
    wake_at: int | None = None
    attempt: int = 0
    """How many times the current step's call has been made or ordered, those made again after a loss included."""
    retries: dict[int, int] = field(default_factory=dict)
    """Retries used, by number of the retry policy."""
    child_wait: int | None = None
    """Number of the wait whose attempt started the execution that the step's last attempt waits, or waited, for. An
    earlier number than `wait_id`: a redrive continues that execution. None if the step has started none to wait for."""
    continued_child: str | None = field(default=None, compare=False)
    """FLOW/NAME of that execution, in the turn of a redrive that continues it; for the event."""
    option: int | None = None
    """The option a choice took; -1 is its default."""
    next_item: int = 0
    """How many iterations a foreach has opened."""
    open_items: int = 0
    """How many branches or iterations still run."""
    document_bytes: int = EMPTY_BYTES
    """Of `local` and `step_input` as compact JSON."""
    has_failed: bool = field(default=False, compare=False)
    """Whether its step has failed and nothing caught that: so the execution has ended, until a redrive."""
    finished: dict[int, Finished] = field(default_factory=dict, compare=False)
    """Finished branches and iterations of the current step by item number, those that are in memory: a loaded execution
    has only those that finished since, until a turn asks for the others."""

    @property
    def has_all_finished(self) -> bool:
        """Whether all of them are in memory."""
        return len(self.finished) == self.next_item - self.open_items

    @property
    def started_event_id(self) -> int:
        """Id of the current step's StepStarted event, which always follows its StepEntered directly."""
        return self.entered_event_id + 1


@dataclass(slots=True)
class Execution:
    """The header of an execution and its live scopes by id; instants in ms since the epoch."""

    execution_id: str
    flow_name: str
    name: str
    input: JsonObject
    started_at: int
    deadline_at: int
    callback_token: str | None = None
    status: Status = Status.RUNNING
    next_event_id: int = 1
    next_scope_id: int = 1
    next_wait_id: int = 1
    stopped_at: int | None = None
    output: JsonObject | None = None
    error: str | None = None
    cause: str | None = None
    failed_step: str | None = None
    """The path of the step whose failure ended it."""
    document_bytes: int = 0
    """Of the documents of all its scopes, and of finished branches and iterations that wait for the join."""
    redrive_count: int = 0
    redriven_at: int | None = None
    """When it was redriven last; its time limit counts from then."""
    waiting_steps: int | None = None
    """How many of its steps have failed and wait for a redrive; None if a failure ends it instead."""
    scopes: dict[int, Scope] = field(default_factory=dict)
    kept_bytes: int = field(default=0, compare=False)
    """What `document_bytes` was when it ended without success: what a redrive would read."""
    kept: dict[int, Scope] = field(default_factory=dict, compare=False)
    """The scopes that it ended with, those that were in memory, if a redrive may go on with them."""
    _opened: dict[int, dict[int, None]] | None = field(default=None, init=False, repr=False, compare=False)
    """By scope id the scopes that its current step opened, in order; built at the first use."""
    _finished_count: int | None = field(default=None, init=False, repr=False, compare=False)
    """How many branches and iterations wait for their join; counted at the first use."""
    sizes: Sizes | None = field(default=None, init=False, repr=False, compare=False)
    """What the last turn has measured: all of it if another one goes on at once, else what is held in any case."""

    @property
    def is_running(self) -> bool:
        """Whether the execution has not ended."""
        return self.status is Status.RUNNING

    @property
    def finished_count(self) -> int:
        """How many branches and iterations are finished and wait for their join, in memory or not."""
        if self._finished_count is None:
            joining = [scope for scope in self.scopes.values() if scope.wait is WaitKind.JOIN]
            self._finished_count = sum(scope.next_item - scope.open_items for scope in joining)
        return self._finished_count

    def recount_finished(self) -> None:
        """Count at the next use again how many branches and iterations wait for their join."""
        self._finished_count = None

    def finish_scope(self, parent: Scope, scope: Scope) -> None:
        """Keep the result of a branch or iteration for the join of its parent, and drop the scope."""
        count = self.finished_count
        self.drop_scope(scope)
        parent.finished[scope.item] = Finished(scope.local, scope.document_bytes)
        parent.open_items -= 1
        self.document_bytes += scope.document_bytes
        self._finished_count = count + 1

    def take_finished(self, scope: Scope) -> list[JsonObject]:
        """Remove and return the results of all branches or iterations of the scope's step, by item number."""
        finished, scope.finished = scope.finished, {}
        self._finished_count = self.finished_count - len(finished)
        self.document_bytes -= sum(each.document_bytes for each in finished.values())
        return [finished[item].local for item in range(len(finished))]

    def open_scope(self, scope: Scope) -> None:
        """Add a new scope."""
        self.scopes[scope.scope_id] = scope
        self.document_bytes += scope.document_bytes
        if self._opened is not None and scope.parent_id is not None:
            self._opened.setdefault(scope.parent_id, {})[scope.scope_id] = None

    def drop_scope(self, scope: Scope) -> None:
        """Remove a scope."""
        del self.scopes[scope.scope_id]
        self.document_bytes -= scope.document_bytes
        if self._opened is not None:
            self._opened.pop(scope.scope_id, None)
            if scope.parent_id is not None:
                self._opened.get(scope.parent_id, {}).pop(scope.scope_id, None)

    def opened_by(self, scope: Scope) -> list[Scope]:
        """The scopes that the scope's current step opened, by item number."""
        if self._opened is None:
            self._opened = {}
            for each in self.scopes.values():
                if each.parent_id is not None:
                    self._opened.setdefault(each.parent_id, {})[each.scope_id] = None
        children = [self.scopes[scope_id] for scope_id in self._opened.get(scope.scope_id, ())]
        return sorted(children, key=lambda child: child.item)
